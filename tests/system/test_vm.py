"""Guests that really boot: what is in them, what they cannot reach, what becomes of them when something fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from excise.errors import DeadlineExceeded, DiskFull, InputError, SandboxGone, SubstrateError
from excise.layers.host import DEFAULT, build_rootfs
from excise.substrates.base import Forks, ReachesHost, Snapshots
from excise.substrates.registry import open_substrate
from excise.substrates.vm.guests import SEED, Guests
from excise.substrates.vm.places import users_of
from excise.types import MIB, Action, Egress, Handle, Limits, Repo, Spec
from tests.contract.conftest import need

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

SMALL = Spec(limits=Limits(memory_bytes=256 * MIB))
GREEDY = "head -c 150000000 /dev/zero | tail -n 1"


@pytest.fixture(params=["vm-uml", "vm"])
def name(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@asynccontextmanager
async def opened(name: str, **options: str) -> AsyncIterator[Guests]:
    substrate = open_substrate(name, **options)
    assert isinstance(substrate, Guests)
    try:
        yield substrate
    finally:
        await substrate.close()


def within(
    name: str, work: Callable[[Guests, Handle], Awaitable[None]], spec: Spec | None = None
) -> None:
    async def act() -> None:
        async with opened(name) as substrate:
            box = await substrate.create(spec or Spec())
            await substrate.ready(box)
            await work(substrate, box)

    asyncio.run(act())


async def text(substrate: Guests, box: Handle, script: str) -> str:
    return (await substrate.run(box, Action.shell(script))).text


def test_a_guest_has_a_kernel_a_clock_and_randomness_of_its_own(name: str) -> None:
    async def work(substrate: Guests, box: Handle) -> None:
        kernel, now, seed = (
            await text(substrate, box, f"uname -r; date +%s; cat {SEED}")
        ).splitlines()
        assert kernel != os.uname().release
        assert abs(int(now) - time.time()) < 5
        assert len(bytes.fromhex(seed)) == 16

    within(name, work)


def test_its_limits_are_its_hardware(name: str) -> None:
    async def work(substrate: Guests, box: Handle) -> None:
        said = await text(substrate, box, "nproc; head -1 /proc/meminfo; df -k / | tail -1")
        processors, memory, disk = said.splitlines()
        assert processors == "1"
        assert 80 < int(memory.split()[1]) / 1024 < 128
        assert 100 < int(disk.split()[1]) / 1024 <= 128
        if name == "vm-uml":  # emulated, a guest that is short of memory is so for half a minute
            greedy = await substrate.run(box, Action.shell(GREEDY))
            assert (greedy.exit_code, greedy.oom) == (137, True)
        bomb = "for i in $(seq 100); do sleep 9 & done"  # of sh: bash would try again for a while
        assert b"fork" in (await substrate.run(box, Action(("sh", "-c", bomb)))).stderr
        await substrate.quiet(box)
        full = await text(substrate, box, "head -c 99000000 /dev/zero > f")
        assert "No space left" in full
        assert await text(substrate, box, "rm f; echo well") == "well\n"

    limits = Limits(memory_bytes=128 * MIB, disk_bytes=128 * MIB, pids=50)
    within(name, work, Spec(limits=limits))


def test_a_repository_is_in_the_workspace_and_root_s(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_text("hello")

    async def work(substrate: Guests, box: Handle) -> None:
        assert await text(substrate, box, "cat r/sub/file; stat -c ' %u' r/sub/file") == "hello 0\n"
        await text(substrate, box, "echo more > r/sub/file")
        await substrate.reset(box)
        assert await substrate.read(box, "r/sub/file") == b"hello"

    within(name, work, Spec(repo=Repo(str(tmp_path), "c", path="r")))


def test_root_of_user_mode_linux_reaches_no_file_of_the_host(tmp_path: Path) -> None:
    need("vm-uml")

    async def work(substrate: Guests, box: Handle) -> None:
        said = await text(
            substrate,
            box,
            "mkdir /mnt; grep hostfs /proc/filesystems; mount -t hostfs none /mnt -o /etc",
        )
        assert "hostfs" in said
        assert await substrate.entries(box, "/mnt") == []
        assert (await substrate.run(box, Action(("mount", "-t", "tmpfs", "none", "/mnt")))).ok

    image = build_rootfs(programs=(*DEFAULT, "mount"), out=tmp_path)
    within("vm-uml", work, Spec(image=str(image.archive)))


def status_of(pid: int) -> dict[str, str]:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(row.split(":\t", 1) for row in rows if ":\t" in row)


@pytest.mark.skipif(os.geteuid() != 0, reason="somebody else's guests are his own processes")
def test_a_machine_of_root_is_nobody_s_process_without_privileges(name: str) -> None:
    async def work(substrate: Guests, box: Handle) -> None:
        running = map(status_of, users_of(substrate._places.root / box))
        machine = [status for status in running if status["Uid"].split()[0] == "65534"]
        assert machine
        for status in machine:
            assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
            assert status["NoNewPrivs"] == "1"

    within(name, work)


def test_a_guest_that_does_not_boot_in_time_is_told_with_what_its_console_says(name: str) -> None:
    async def act() -> None:
        async with opened(name, boot_s="0.01") as substrate:
            box = await substrate.create(Spec())
            with pytest.raises(DeadlineExceeded, match=r"did not boot within 0\.01 s"):
                await substrate.ready(box)

    asyncio.run(act())


def test_a_disk_that_holds_no_file_system_is_told_by_the_guest(name: str, tmp_path: Path) -> None:
    broken = bytearray(8 * MIB)
    broken[1080:1082] = b"\x53\xef"
    (tmp_path / "disk").write_bytes(broken)

    async def act() -> None:
        async with opened(name) as substrate:
            box = await substrate.create(Spec(image=str(tmp_path / "disk")))
            with pytest.raises(
                SubstrateError, match=r"excise-guest: /dev/[a-z]*: Invalid argument"
            ):
                await substrate.ready(box)

    asyncio.run(act())


def test_a_machine_that_is_killed_is_a_sandbox_that_is_gone(name: str) -> None:
    async def work(substrate: Guests, box: Handle) -> None:
        running = asyncio.ensure_future(substrate.run(box, Action(("sleep", "60"))))
        await substrate.run(box, Action(("true",)))
        for pid in users_of(substrate._places.root / box):
            with contextlib.suppress(ProcessLookupError):  # one of them takes the others along
                os.kill(pid, 9)
        with pytest.raises(SandboxGone, match="has ended"):
            await running
        with pytest.raises(SandboxGone):
            await substrate.run(box, Action(("true",)))

    within(name, work)


OWN = "cat /proc/sys/kernel/random/uuid; echo $RANDOM; cat " + SEED + "; date +%s"


def test_copies_of_a_guest_share_its_past_and_nothing_after() -> None:
    need("vm")

    async def work(substrate: Guests, box: Handle) -> None:
        assert isinstance(substrate, Forks)
        write = "echo past > file; echo memory > /dev/shm/file; sleep 100 & cat /proc/uptime"
        await text(substrate, box, write)
        everybody = [box, *await substrate.fork(box, 2)]
        told = [(await text(substrate, each, OWN)).splitlines() for each in everybody]
        for number, random in enumerate(zip(*told, strict=True)):
            if number < 3:  # a kernel's random numbers, a shell's, our own: all of them differ
                assert len(set(random)) == len(everybody), random
        assert all(abs(int(each[3]) - time.time()) < 30 for each in told)
        for number, each in enumerate(everybody):
            await text(substrate, each, f"echo {number} >> file; echo {number} >> /dev/shm/file")
        for number, each in enumerate(everybody):
            assert await text(substrate, each, "cat file") == f"past\n{number}\n"
            assert await text(substrate, each, "cat /dev/shm/file") == f"memory\n{number}\n"
        assert "sleep" not in await text(substrate, each, "ps -e")
        (again,) = await substrate.fork(everybody[1])
        assert await text(substrate, again, "cat file") == "past\n1\n"
        assert await text(substrate, again, OWN) != await text(substrate, everybody[1], OWN)

    within("vm", work, SMALL)


def test_guests_are_made_of_one_that_has_booted_or_of_a_snapshot() -> None:
    need("vm+fork")

    async def work(substrate: Guests, box: Handle) -> None:
        assert isinstance(substrate, Snapshots)
        first = await text(substrate, box, OWN)
        other = await substrate.create(SMALL)
        assert await text(substrate, other, OWN) != first
        await text(substrate, other, "echo dirt > dirt")
        await substrate.reset(other)
        assert await text(substrate, other, "ls") == ""
        await text(substrate, box, "echo kept > file")
        reference = await substrate.snapshot(box)
        copy = await substrate.create(replace(SMALL, image=reference))
        assert await text(substrate, copy, "cat file") == "kept\n"
        with pytest.raises(InputError, match="has the limits of what it is a copy of"):
            await substrate.create(Spec(image=reference))
        await substrate.forget(reference)
        with pytest.raises(InputError, match="has no snapshot"):
            await substrate.create(replace(SMALL, image=reference))

    within("vm+fork", work, SMALL)


def test_a_guest_with_egress_reaches_a_server_of_this_host() -> None:
    need("vm")

    async def work(substrate: Guests, box: Handle) -> None:
        assert isinstance(substrate, ReachesHost)
        host = await substrate.host_address()
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            asking = asyncio.ensure_future(
                text(substrate, box, f"exec 3<>/dev/tcp/{host}/{port}; cat <&3")
            )
            server.setblocking(False)
            client, _ = await asyncio.get_running_loop().sock_accept(server)
            with client:
                client.sendall(b"hello\n")
        assert await asking == "hello\n"

    within("vm", work, replace(SMALL, egress=Egress.FULL))


def test_a_guest_without_egress_has_no_network_card() -> None:
    need("vm")

    async def work(substrate: Guests, box: Handle) -> None:
        assert await text(substrate, box, "ls /sys/class/net") == "lo\n"

    within("vm", work, SMALL)


def test_an_image_that_is_not_there_is_bad_input(name: str) -> None:
    async def act() -> None:
        async with opened(name) as substrate:
            with pytest.raises(InputError, match="has no image no/such"):
                await substrate.create(Spec(image="no/such"))

    asyncio.run(act())


def test_user_mode_linux_refuses_what_it_has_not() -> None:
    need("vm-uml")

    async def act() -> None:
        async with opened("vm-uml") as substrate:
            for spec in (Spec(egress=Egress.FULL), Spec(limits=Limits(cpus=2))):
                with pytest.raises(InputError):
                    await substrate.create(spec)

    asyncio.run(act())


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a file system")
def test_a_full_disk_is_one_line_and_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", tmp_path], check=True)
    monkeypatch.setenv("EXCISE_CACHE", str(tmp_path))
    host = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "excise" / "images"
    try:

        async def act() -> None:
            async with opened(name) as substrate:
                archive = min(host.glob("host-*.tar"))
                with pytest.raises(DiskFull, match="no room for a guest's disk"):
                    await substrate.create(Spec(image=str(archive)))

        asyncio.run(act())
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


OWNER = """
import asyncio, sys
from excise.substrates.registry import open_substrate
from excise.types import Action, Spec

async def main():
    substrate = open_substrate(sys.argv[1])
    box = await substrate.create(Spec())
    await substrate.ready(box)
    print(substrate._places.root / box, flush=True)
    await substrate.run(box, Action(("sleep", "600"), timeout_s=None))

asyncio.run(main())
"""


def test_what_a_killed_owner_leaves_ends_by_itself_and_is_swept(name: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    place = Path(owner.stdout.readline().strip())
    is_there = place.exists
    assert users_of(place)
    owner.kill()
    owner.wait()
    owner.stdout.close()

    async def work(substrate: Guests, box: Handle) -> None:
        for _ in range(1000):
            if not users_of(place):
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the guest goes on without its owner")
        assert is_there()
        assert await substrate.sweep() >= 1
        assert not is_there()
        assert (await substrate.run(box, Action(("true",)))).ok

    within(name, work)
