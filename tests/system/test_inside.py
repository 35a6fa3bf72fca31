"""An agent in real containers: in images without anything, as whoever, on read-only roots; and what its owner leaves.

Each test runs on docker; on podman and gVisor too where lab/ has brought them up (make test-lab).
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from yarl import URL

from excise.errors import InputError, Phase, SandboxGone
from excise.substrates.container.inside import ContainerInside
from excise.substrates.container.placing import PROGRAM
from excise.substrates.registry import open_substrate
from excise.types import MIB, Action, Handle, Limits, Repo, Spec
from tests.contract.conftest import need

GREEDY = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo no"


@pytest.fixture(
    params=[
        pytest.param("docker+agent", marks=pytest.mark.docker),
        pytest.param("podman+agent", marks=[pytest.mark.podman, pytest.mark.lab]),
        pytest.param("gvisor+agent", marks=[pytest.mark.docker, pytest.mark.lab]),
    ]
)
def name(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@asynccontextmanager
async def opened(name: str, **options: str) -> AsyncIterator[ContainerInside]:
    substrate = open_substrate(name, **options)
    assert isinstance(substrate, ContainerInside)
    try:
        yield substrate
    finally:
        await substrate.close()


def within(
    name: str,
    spec: Spec,
    work: Callable[[ContainerInside, Handle], Awaitable[None]],
    **options: str,
) -> None:
    async def act() -> None:
        async with opened(name, **options) as substrate:
            box = await substrate.create(spec)
            try:
                await substrate.ready(box)
                await work(substrate, box)
            finally:
                await substrate.destroy(box)

    asyncio.run(act())


@asynccontextmanager
async def image(substrate: ContainerInside, *changes: str, **files: bytes) -> AsyncIterator[str]:
    """An image of these files and nothing else, with settings as a Dockerfile has them."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for path, data in files.items():
            entry = tarfile.TarInfo(path.replace("__", "/"))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    reference = f"excise-test/{os.getpid()}:{os.urandom(4).hex()}"
    repository, _, tag = reference.partition(":")
    query = [("fromSrc", "-"), ("repo", repository), ("tag", tag)]
    query += [("changes", change) for change in changes]
    client = substrate._engine._connected(Phase.CREATE)
    answer = await client._do_query(
        URL("images/create").with_query(query), "POST", data=archive.getvalue(),
        headers={"Content-Type": "application/x-tar"},
    )  # fmt: skip
    async with answer:
        said = (await answer.read()).decode()
    made = said.rpartition("sha256:")[2][:64]
    try:
        yield f"sha256:{made}"
    finally:
        await client.images.delete(f"sha256:{made}", force=True)


def test_it_works_in_an_image_without_a_shell_a_libc_or_python(name: str) -> None:
    async def act() -> None:
        async with opened(name) as substrate, image(substrate, etc__motd=b"hello") as empty:
            box = await substrate.create(Spec(image=empty))
            await substrate.ready(box)
            said = await substrate.run(box, Action((PROGRAM, "--version")))
            assert (said.exit_code, said.stdout[:13]) == (0, b"excise-agent ")
            assert (await substrate.run(box, Action(("bash",)))).exit_code == 127
            assert await substrate.read(box, "/etc/motd") == b"hello"
            await substrate.write(box, "new/file", b"data")
            assert await substrate.read(box, "/work/new/file") == b"data"
            hung = await substrate.run(
                box, Action((PROGRAM, "agent", "--unix", "/tmp/s"), timeout_s=0.5)
            )
            assert (hung.timed_out, hung.exit_code) == (True, 137)
            assert (await substrate.run(box, Action((PROGRAM, "--version")))).ok
            await substrate.destroy(box)

    asyncio.run(act())


def test_commands_are_the_specs_user_and_any_other_that_an_action_names(name: str) -> None:
    async def work(substrate: ContainerInside, box: Handle) -> None:
        who = 'echo "$(id -u) $(id -g) $HOME"; touch /etc/x 2>/dev/null && echo mine'
        assert (await substrate.run(box, Action.shell(who))).stdout == b"65534 65534 /nonexistent\n"
        root = Action(("bash", "-c", who), user="root")
        assert (await substrate.run(box, root)).stdout == b"0 0 /root\nmine\n"
        number = Action(("bash", "-c", "id -u; id -g"), user="1234:5678")
        assert (await substrate.run(box, number)).stdout == b"1234\n5678\n"
        with pytest.raises(InputError, match="nosuch"):
            await substrate.run(box, Action(("true",), user="nosuch"))

    within(name, Spec(user="nobody"), work)


def test_a_user_cannot_end_the_agent(name: str) -> None:
    async def work(substrate: ContainerInside, box: Handle) -> None:
        await substrate.run(box, Action.shell("kill -9 1 2 3 4 5 6 7 8 9; kill -9 -1"))
        assert (await substrate.run(box, Action(("true",)))).ok

    within(name, Spec(user="nobody"), work)


def test_an_images_own_user_and_variables_hold(name: str) -> None:
    async def act() -> None:
        async with opened(name) as substrate:
            given = ("USER 1234", "ENV HOME=/somewhere", "ENV COLOUR=red")
            async with image(substrate, *given, etc__motd=b"x") as made:
                box = await substrate.create(Spec(image=made, env={"COLOUR": "blue", "MORE": "1"}))
                resident = await substrate.resident(box, Phase.RUN)
                assert resident.habits.user == "1234"
                told = {k: resident.habits.env[k] for k in ("HOME", "COLOUR", "MORE")}
                assert told == {"HOME": "/somewhere", "COLOUR": "blue", "MORE": "1"}
                await substrate.destroy(box)

    asyncio.run(act())


@pytest.mark.parametrize("place", ["mount", "copy"])
def test_a_read_only_root_holds_the_agent_and_a_checkout(
    name: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("a")

    async def work(substrate: ContainerInside, box: Handle) -> None:
        found = await substrate.run(box, Action.shell("cat src/a; touch /etc/x; echo b > b; cat b"))
        assert found.stdout == b"ab\n"
        assert b"Read-only file system" in found.stderr
        long = await substrate.run(box, Action.shell(f"x='{'y' * 200_000}'; echo ${{#x}}"))
        assert long.stdout == b"200000\n"

    spec = Spec(repo=Repo(str(tmp_path), commit="0" * 40, path="src"))
    within(name, spec, work, root="read-only", place=place)


def test_a_checkout_is_there_from_the_first_action(name: str, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/a.txt").write_text("a")

    async def work(substrate: ContainerInside, box: Handle) -> None:
        found = await substrate.run(
            box, Action.shell("cat src/pkg/a.txt; stat -c %U src/pkg/a.txt")
        )
        assert found.stdout == b"aroot\n"

    within(name, Spec(repo=Repo(str(tmp_path), commit="0" * 40, path="src")), work)


def test_an_agent_that_is_killed_is_a_sandbox_that_is_gone(name: str) -> None:
    async def work(substrate: ContainerInside, box: Handle) -> None:
        running = asyncio.ensure_future(substrate.run(box, Action(("sleep", "300"))))
        await substrate.run(box, Action(("true",)))
        with pytest.raises(SandboxGone, match="has ended"):
            await substrate.run(box, Action.shell("kill -9 -1; sleep 300"))
        with pytest.raises(SandboxGone):
            await running

    within(name, Spec(), work)


def test_an_action_ends_with_what_it_printed_though_the_next_is_endless(name: str) -> None:
    async def work(substrate: ContainerInside, box: Handle) -> None:
        action = Action.shell("echo one; read line; echo $line; [ -t 0 ] || echo no terminal")
        stream = await substrate.stream(box, action)
        heard = bytearray()
        async for _, data in stream:
            heard += data
            if heard == b"one\n":
                await stream.write(b"two\n")
        assert bytes(heard) == b"one\ntwo\nno terminal\n"
        assert (await stream.wait()).ok
        number = await substrate.start(box, Action.shell("echo begun; sleep 300", timeout_s=None))
        assert [each.number for each in await substrate.started(box)] == [number]
        attached = await substrate.attach(box, number)
        async for _, data in attached:
            assert data == b"begun\n"
            await substrate.signal(box, number, signal.SIGKILL)
        assert (await attached.wait()).exit_code == 137

    within(name, Spec(), work)


@pytest.mark.parametrize(
    "kind", ["docker+agent", pytest.param("podman+agent", marks=pytest.mark.lab)]
)
def test_memory_over_the_limit_is_killed_and_told_and_the_agent_lives(kind: str) -> None:
    need(kind)

    async def work(substrate: ContainerInside, box: Handle) -> None:
        found = await substrate.run(box, Action.shell(GREEDY))
        assert (found.exit_code, b"no" in found.stdout) == (137, False)
        if kind.startswith("docker"):  # podman tells nobody
            assert found.oom
        # A second process of the same burst may die, or be told of, a little later.
        await substrate.run(box, Action.shell("sleep 1; exit 1"))
        killed = await substrate.run(box, Action.shell("kill -9 $$"))
        assert (killed.exit_code, killed.oom) == (137, False)

    within(kind, Spec(limits=Limits(memory_bytes=64 * MIB)), work)


OWNER = """
import asyncio, sys
from excise.substrates.registry import open_substrate
from excise.types import Action, Spec

async def main():
    substrate = open_substrate(sys.argv[1])
    box = await substrate.create(Spec())
    await substrate.ready(box)
    asyncio.ensure_future(substrate.run(box, Action(("sleep", "600"), timeout_s=None)))
    await substrate.run(box, Action(("true",)))
    print(box, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_what_a_killed_owner_leaves_ends_by_itself_and_is_swept(name: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    orphan = owner.stdout.readline().strip()
    owner.kill()
    owner.wait()
    owner.stdout.close()

    async def work(substrate: ContainerInside, box: Handle) -> None:
        client = substrate._engine._connected(Phase.RUN)
        for _ in range(500):
            found = await client.containers.container(orphan).show()
            if not found["State"]["Running"]:
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the container goes on without its owner")
        assert await substrate.sweep() >= 1
        with pytest.raises(Exception, match=r"(?i)no such container|no container with"):
            await client.containers.container(orphan).show()
        assert (await substrate.run(box, Action(("true",)))).ok

    within(name, Spec(), work)
