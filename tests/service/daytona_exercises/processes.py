"""Commands, sessions and terminals."""

from __future__ import annotations

from typing import Any

import daytona
from calling import Called, exercise, fails, in_session, is_blocking


@exercise("processes")
async def runs_commands(client: Called, box: Called) -> None:
    found = await box.process.exec("echo out; echo err >&2; exit 7")
    assert (found.exit_code, found.result) == (7, "out\nerr\n") or found.result == "out\nerr"
    found = await box.process.exec('echo "$A" $PWD', cwd="/tmp", env={"A": 'it\'s $1 "x"'})
    assert found.result.strip() == 'it\'s $1 "x" /tmp'
    long = "x" * 200_000
    assert (await box.process.exec(f"echo {long} | wc -c")).result.strip() == "200001"


@exercise("processes")
async def ends_commands_that_take_too_long(client: Called, box: Called) -> None:
    await fails(lambda: box.process.exec("sleep 30", timeout=1), "DaytonaError", "timeout")


@exercise("processes")
async def runs_python(client: Called, box: Called) -> None:
    code = "import os, sys\nprint('sum', 1 + 1, sys.argv[1:], os.environ['K'])"
    params = daytona.common.process.CodeRunParams(argv=["a"], env={"K": "v"})
    found = await box.process.code_run(code, params)
    assert (found.exit_code, found.result.strip()) == (0, "sum 2 ['a'] v")
    found = await box.process.code_run("raise SystemExit(3)")
    assert found.exit_code == 3


@exercise("processes")
async def runs_javascript(client: Called, box: Called) -> None:
    made = await client.create(daytona.CreateSandboxFromSnapshotParams(language="javascript"))
    try:
        found = await made.process.code_run("console.log(['a', 'b'].map(x => x + x).join())")
        missing = found.exit_code == 127 and "node" in found.result
        assert found.result.strip() == "aa,bb" or missing
    finally:
        await made.delete()


@exercise("processes")
async def has_sessions_that_remember(client: Called, box: Called) -> None:
    process = box.process
    await process.create_session("s")
    await fails(
        lambda: process.create_session("s"), "DaytonaConflictError", "session already exists"
    )
    first = await in_session(
        box, "s", "cd /tmp; export X=5; f() { echo f$1; }; echo out; echo err >&2"
    )
    assert (first.exit_code, first.stdout, first.stderr) == (0, "out\n", "err\n")
    second = await in_session(box, "s", "pwd; echo $X; f 1; false")
    assert (second.exit_code, second.stdout) == (1, "/tmp\n5\nf1\n")
    told = await process.get_session("s")
    assert [each.exit_code for each in told.commands] == [0, 1]
    assert "s" in [each.session_id for each in await process.list_sessions()]
    logs = await process.get_session_command_logs("s", first.cmd_id)
    assert (logs.stdout, logs.stderr) == ("out\n", "err\n")
    await process.delete_session("s")
    await fails(lambda: process.get_session("s"), "DaytonaNotFoundError")


@exercise("processes")
async def follows_what_goes_on(client: Called, box: Called) -> None:
    process = box.process
    await process.create_session("follow")
    script = "for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.1; done; exit_code() { return 9; }; exit_code"
    command = await in_session(box, "follow", script, run_async=True)
    out: list[str] = []
    err: list[str] = []
    await process.get_session_command_logs_async("follow", command.cmd_id, out.append, err.append)
    assert ("".join(out), "".join(err)) == ("o1\no2\no3\n", "e1\ne2\ne3\n")
    told = await process.get_session_command("follow", command.cmd_id)
    assert told.exit_code == 9


@exercise("processes")
async def feeds_a_command(client: Called, box: Called) -> None:
    process = box.process
    await process.create_session("input")
    command = await in_session(box, "input", "read x; read y; echo $y $x", run_async=True)
    await process.send_session_command_input("input", command.cmd_id, "one\ntwo\n")
    told = await process.get_session_command("input", command.cmd_id)
    assert told.exit_code == 0, "the answer was held until the command had ended"
    logs = await process.get_session_command_logs("input", command.cmd_id)
    assert logs.stdout == "two one\n"


@exercise("processes")
async def has_an_entry_point(client: Called, box: Called) -> None:
    image = daytona.Image.base("host").entrypoint(["sh", "-c", "echo started; sleep 100"])
    made = await client.create(daytona.CreateSandboxFromImageParams(image=image), timeout=120)
    try:
        (command,) = (await made.process.get_entrypoint_session()).commands
        assert "started" in command.command
        logs = await made.process.get_entrypoint_logs()
        while "started" not in logs.stdout:
            logs = await made.process.get_entrypoint_logs()
        await made.process.exec("pkill sleep || kill -9 -1")
        out: list[str] = []
        await made.process.get_entrypoint_logs_async(out.append, out.append)
        assert "started" in "".join(out)
    finally:
        await made.delete()


@exercise("terminals")
async def types_at_a_terminal(client: Called, box: Called) -> None:
    shown: list[bytes] = []
    size = daytona.common.pty.PtySize(rows=30, cols=90)
    keep: dict[str, Any] = {} if is_blocking(box) else {"on_data": shown.append}
    handle = await box.process.create_pty_session(
        "t", cwd="/tmp", envs={"V": "w"}, pty_size=size, **keep
    )
    await handle.wait_for_connection()
    info = await box.process.get_pty_session_info("t")
    assert (info.rows, info.cols, info.active) == (30, 90, True)
    await box.process.resize_pty_session("t", daytona.common.pty.PtySize(rows=31, cols=91))
    assert "t" in [each.id for each in await box.process.list_pty_sessions()]
    await handle.send_input("stty size; echo $V $PWD; exit 7\n")
    found = await (handle.wait(shown.append) if is_blocking(box) else handle.wait())
    assert found.exit_code == 7 or not hasattr(daytona.common.pty, "PTY_EXIT_CONTROL_SUBPROTOCOL")
    text = b"".join(shown)
    assert b"31 91" in text
    assert b"w /tmp" in text
    await handle.disconnect()


@exercise("terminals")
async def comes_back_to_a_terminal(client: Called, box: Called) -> None:
    shown: list[bytes] = []
    keep: dict[str, Any] = {} if is_blocking(box) else {"on_data": shown.append}
    first = await box.process.create_pty_session("again", **keep)
    await first.disconnect()
    handle = await box.process.connect_pty_session("again", **keep)
    assert await handle.is_connected()
    await handle.resize(daytona.common.pty.PtySize(rows=40, cols=100))
    await handle.send_input(b"stty size; exit\n")
    await (handle.wait(shown.append) if is_blocking(box) else handle.wait())
    assert b"40 100" in b"".join(shown)


@exercise("terminals")
async def kills_a_terminal(client: Called, box: Called) -> None:
    keep: dict[str, Any] = {} if is_blocking(box) else {"on_data": lambda _: None}
    handle = await box.process.create_pty_session("killed", **keep)
    await handle.kill()
    await handle.wait()
    other = await box.process.create_pty_session("other", **keep)
    await box.process.kill_pty_session("other")
    await other.disconnect()
    await fails(lambda: box.process.get_pty_session_info("other"), "DaytonaNotFoundError")
