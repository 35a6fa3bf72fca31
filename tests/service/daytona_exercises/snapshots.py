"""Snapshots, images and interpreters."""

from __future__ import annotations

import daytona
from calling import Called, exercise, fails, in_session


@exercise("snapshots")
async def keeps_a_sandbox(client: Called, box: Called) -> None:
    await box.process.create_session("stays")
    await in_session(box, "stays", "cd /tmp; V=1")
    await box.process.exec("echo kept > /work/kept")
    create = getattr(box.inner, "create_snapshot", None)
    await (
        box.create_snapshot("of-a-sandbox")
        if create
        else box._experimental_create_snapshot("of-a-sandbox")
    )
    made = await client.create(daytona.CreateSandboxFromSnapshotParams(snapshot="of-a-sandbox"))
    try:
        assert (await made.process.exec("cat /work/kept")).result == "kept\n"
        assert (await in_session(box, "stays", "pwd; echo $V")).stdout == "/tmp\n1\n"
    finally:
        await made.delete()
        await client.snapshot.delete(await client.snapshot.get("of-a-sandbox"))


@exercise("snapshots")
async def builds_a_dockerfile(client: Called, box: Called) -> None:
    image = (
        daytona.Image.base("host")
        .env({"GREETING": "it's $me"})
        .workdir("/app")
        .run_commands('echo "$GREETING" > made', "echo two >> made")
    )
    lines: list[str] = []
    params = daytona.CreateSnapshotParams(name="built", image=image)
    snapshot = await client.snapshot.create(params, on_logs=lines.append)
    assert snapshot.state.value == "active"
    assert [each.name for each in (await client.snapshot.list()).items if each.name == "built"]
    assert lines
    made = await client.create(daytona.CreateSandboxFromSnapshotParams(snapshot="built"))
    try:
        assert (await made.process.exec("cat made; pwd")).result.strip() == "it's $me\ntwo\n/app"
    finally:
        await made.delete()
    await fails(lambda: client.snapshot.create(params), "DaytonaConflictError", "already exists")
    assert (await client.snapshot.activate(snapshot)).name == "built"
    await client.snapshot.delete(snapshot)
    await fails(lambda: client.snapshot.get("built"), "DaytonaNotFoundError")


@exercise("snapshots")
async def tells_why_a_build_failed(client: Called, box: Called) -> None:
    image = daytona.Image.base("host").run_commands("echo told; exit 4")
    params = daytona.CreateSnapshotParams(name="fails", image=image)
    await fails(lambda: client.snapshot.create(params), "DaytonaError", "told")
    await client.snapshot.delete(await client.snapshot.get("fails"))


@exercise("snapshots")
async def creates_from_an_image(client: Called, box: Called) -> None:
    image = daytona.Image.base("host").run_commands("echo x > /built")
    for _ in range(2):
        made = await client.create(daytona.CreateSandboxFromImageParams(image=image), timeout=120)
        assert (await made.process.exec("cat /built")).result.strip() == "x"
        await made.delete()
    needs = daytona.Image.base("host").dockerfile_commands(["COPY --from=other /a /b"])
    await fails(
        lambda: client.create(daytona.CreateSandboxFromImageParams(image=needs)),
        "DaytonaError",
        "COPY",
    )


@exercise("interpreters")
async def interprets(client: Called, box: Called) -> None:
    found = await box.code_interpreter.run_code(
        "import sys\nx = 20\nprint('p')\nprint('e', file=sys.stderr)\nx + 1"
    )
    assert (found.stdout, found.stderr, found.error) == ("p\n21\n", "e\n", None)
    found = await box.code_interpreter.run_code("x * 2")
    assert found.stdout == "40\n"
    found = await box.code_interpreter.run_code("1 / 0")
    assert found.error.name == "ZeroDivisionError"
    found = await box.code_interpreter.run_code(
        "import os; print(os.environ['K'])", envs={"K": "v"}
    )
    assert found.stdout == "v\n"


@exercise("interpreters")
async def interprets_apart(client: Called, box: Called) -> None:
    interpreter = box.code_interpreter
    context = await interpreter.create_context(cwd="/tmp")
    found = await interpreter.run_code("import os; y = 1; print(os.getcwd())", context=context)
    assert found.stdout == "/tmp\n"
    assert [each.id for each in await interpreter.list_contexts()] == [context.id]
    found = await interpreter.run_code("y")
    assert found.error.name == "NameError"
    await interpreter.delete_context(context)
    assert not await interpreter.list_contexts()


@exercise("interpreters")
async def gives_up_on_code(client: Called, box: Called) -> None:
    await fails(
        lambda: box.code_interpreter.run_code("import time; time.sleep(60)", timeout=1),
        "DaytonaError",
        "timed out",
    )
    assert (await box.code_interpreter.run_code("1")).stdout == "1\n"
