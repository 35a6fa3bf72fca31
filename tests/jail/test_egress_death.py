"""Whoever dies, and however: nothing of a jail's network outlives the jail, its driver or its closing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from excise.errors import SubstrateError
from excise.jail import egress
from excise.jail.keeper import NAMESPACE, PRIVATE
from excise.types import Allow, Egress

from .spaces import Space, a_space, need_egress

ROOT = str(Path(egress.__file__).parents[2])
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from excise.jail import egress
from excise.jail.keeper import NAMESPACE, PRIVATE
from excise.types import Allow
host = egress.host_address()
network = egress.open_egress_now(int(sys.argv[2]), Allow((f"{host}:9", sys.argv[3])))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need_egress()


@pytest.fixture
def jail() -> Iterator[Space]:
    with a_space() as made:
        yield made


@pytest.fixture
def name() -> str:
    """One that this host surely looks up to something that a jail may reach: itself, as an address."""
    return f"{egress.host_address()}:10/udp"


def parent_of(pid: int) -> int | None:
    """None for the dead, buried or not."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else int(parent)


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def offspring(pid: int) -> set[int]:
    found, more = set(), {pid}
    while more:
        more = {p for p in processes() if parent_of(p) in more}
        found |= more
    return found


def inside(space: int) -> set[int]:
    """The living processes in the network name space with that inode."""
    found = set()
    for pid in processes():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/ns/net").stat().st_ino == space and parent_of(pid) is not None:
                found.add(pid)
    return found


def eventually(true: Callable[[], bool]) -> None:
    """Fail by the test's own time limit."""
    while not true():
        time.sleep(0.01)


def all_dead(pids: set[int]) -> Callable[[], bool]:
    return lambda: not any(parent_of(pid) is not None for pid in pids)


def test_closing_ends_the_tools_and_leaves_no_mount(jail: Space) -> None:
    network = egress.open_egress_now(jail.pid, Egress.FULL)
    tools = offspring(os.getpid()) - {jail.pid}
    assert len(tools) >= 3, "two halves of the keeper, and pasta"
    points = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    assert not points & {str(PRIVATE), str(NAMESPACE)}, "its mounts are its own"
    network.close_now()
    assert all_dead(tools)(), "gone when closing returns, not later"
    assert inside(jail.inode) == {jail.pid}
    network.close_now()


def test_the_tools_end_with_the_jail(jail: Space) -> None:
    space = jail.inode
    with egress.open_egress_now(jail.pid, Egress.FULL) as network:
        assert network.alive
        tools = offspring(os.getpid()) - {jail.pid}
        jail.process.kill()
        eventually(all_dead(tools))
        assert not network.alive
        eventually(lambda: not inside(space))


@pytest.mark.parametrize("victims", ["driver", "driver and jail", "keeper", "a tool"])
def test_a_killed_part_takes_the_rest_along(jail: Space, name: str, victims: str) -> None:
    space = jail.inode
    command = [sys.executable, "-I", "-c", DRIVER, ROOT, str(jail.pid), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"open\n"
        tools = offspring(driver.pid)
        first = next(p for p in tools if parent_of(p) == driver.pid)
        last = next(p for p in tools if not offspring(p))
        dying = {
            "driver": [driver.pid],
            "driver and jail": [driver.pid, jail.pid],
            "keeper": [first],
            "a tool": [last],
        }[victims]
        for pid in dying:
            os.kill(pid, signal.SIGKILL)
        eventually(all_dead(tools))
        driver.kill()
    left = set() if victims == "driver and jail" else {jail.pid}
    eventually(lambda: inside(space) == left)


def test_a_driver_killed_while_it_opens_leaves_nothing(jail: Space, name: str) -> None:
    space = jail.inode
    for _ in range(8):
        command = [sys.executable, "-I", "-c", DRIVER, ROOT, str(jail.pid), name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
            tools: set[int] = set()
            while not tools:
                tools = offspring(driver.pid)
            driver.kill()
            tools |= offspring(driver.pid)
            eventually(all_dead(tools))
        eventually(lambda: inside(space) == {jail.pid})


def test_a_cancelled_opening_leaves_nothing(jail: Space) -> None:
    space = jail.inode

    async def cancelled() -> None:
        opening = asyncio.create_task(egress.open_egress(jail.pid, Egress.FULL))
        while not offspring(os.getpid()) - {jail.pid}:  # noqa: ASYNC110
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert offspring(os.getpid()) == {jail.pid}

    asyncio.run(cancelled())
    assert inside(space) == {jail.pid}


def test_a_second_network_is_refused_until_the_first_is_closed(
    jail: Space,
) -> None:
    with egress.open_egress_now(jail.pid, Egress.FULL) as network:
        with pytest.raises(SubstrateError, match="close that first"):
            egress.open_egress_now(jail.pid, Egress.FULL)
        assert network.alive
    with egress.open_egress_now(jail.pid, Allow((f"{egress.host_address()}:9",))):
        listed = jail.inside("nft", "list", "ruleset").stdout
    assert listed.count("chain leaving") == 1
    assert "tcp4" in listed


def test_many_networks_open_and_close_side_by_side() -> None:
    before, threads = offspring(os.getpid()), threading.active_count()
    with contextlib.ExitStack() as stack:
        jails = [stack.enter_context(a_space()) for _ in range(6)]

        async def together() -> None:
            wanted = Allow((f"{egress.host_address()}:9",))
            networks = await asyncio.gather(*(egress.open_egress(j.pid, wanted) for j in jails))
            assert all(network.alive for network in networks)
            await asyncio.gather(*(network.close() for network in networks))

        asyncio.run(together())
    assert offspring(os.getpid()) == before
    assert threading.active_count() == threads
