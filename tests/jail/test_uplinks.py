"""A keeper waits before it is asked for, tools end behind the caller's back, and closing leaves none of either."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.jail import egress
from excise.jail.uplinks import Uplinks
from excise.types import Egress

from .spaces import Space, a_space, need_egress
from .test_egress_death import all_dead, eventually, offspring, parent_of

ROOT = str(Path(egress.__file__).parents[2])


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need_egress()


@pytest.fixture
def jail() -> Iterator[Space]:
    with a_space() as space:
        yield space


@pytest.fixture
def uplinks() -> Iterator[Uplinks]:
    made = Uplinks()
    yield made
    made.close()


def keepers(but: Space) -> set[int]:
    """Children of this process; the jail's init is one too."""
    mine = {pid for pid in offspring(os.getpid()) if parent_of(pid) == os.getpid()}
    return mine - {but.pid}


def test_the_second_network_finds_its_keeper_waiting(jail: Space, uplinks: Uplinks) -> None:
    uplinks.let_go(uplinks.open_now(jail.pid, Egress.FULL))
    eventually(lambda: len(keepers(jail)) == 1)
    (waiting,) = keepers(jail)
    with uplinks.open_now(jail.pid, Egress.FULL) as network:
        assert network.alive
        assert waiting in keepers(jail), "the one that waited keeps it"
        assert len(keepers(jail)) == 2, "and the next one waits"
        assert os.sched_getscheduler(waiting) == os.SCHED_OTHER


def test_the_one_that_waits_runs_only_when_nobody_else_would(jail: Space, uplinks: Uplinks) -> None:
    with uplinks.open_now(jail.pid, Egress.FULL):
        eventually(lambda: os.SCHED_IDLE in {os.sched_getscheduler(pid) for pid in keepers(jail)})


def test_one_that_died_waiting_is_replaced(jail: Space, uplinks: Uplinks) -> None:
    uplinks.let_go(uplinks.open_now(jail.pid, Egress.FULL))
    eventually(lambda: len(keepers(jail)) == 1)
    (waiting,) = keepers(jail)
    os.kill(waiting, signal.SIGKILL)
    eventually(all_dead({waiting}))
    with uplinks.open_now(jail.pid, Egress.FULL) as network:
        assert network.alive


def test_closing_waits_for_all_that_were_let_go(uplinks: Uplinks) -> None:
    async def opened_and_left() -> set[int]:
        with a_space() as one, a_space() as other:
            networks = [await uplinks.open(space.pid, Egress.FULL) for space in (one, other)]
            tools = offspring(os.getpid()) - {one.pid, other.pid}
            for network in networks:
                uplinks.let_go(network)
                uplinks.let_go(network)
            await asyncio.to_thread(uplinks.close)
            return tools

    tools = asyncio.run(opened_and_left())
    assert len(tools) >= 6, "two keepers of two halves, with a pasta each"
    assert all_dead(tools)(), "gone when closing returns, not later"
    uplinks.close()


DRIVER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from excise.jail.uplinks import Uplinks
from excise.types import Egress
uplinks = Uplinks()
uplinks.let_go(uplinks.open_now(int(sys.argv[2]), Egress.FULL))
print("waiting", flush=True)
sys.stdin.read()
"""


def test_a_killed_driver_leaves_none_waiting(jail: Space) -> None:
    command = [sys.executable, "-I", "-c", DRIVER, ROOT, str(jail.pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"waiting\n"
        left = offspring(driver.pid)
        assert left
        driver.kill()
    eventually(all_dead(left))
