"""However driver, spawner and helpers die, nothing stays: no process, mount, cgroup, file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from excise.jail import cgroups, lease
from excise.jail.cgroups import discover
from excise.jail.spawner import Spawner
from excise.jail.sweep import Swept, sweep

DRIVER = """
import json, os, sys, time
from pathlib import Path
from excise.jail.control import BoxLimits
from excise.jail.spawner import Spawner
from excise.agent.connection import Connection
from excise.agent.messages import Exec

leases, layer, children = sys.argv[1:]
spawner = Spawner.start(leases=Path(leases))
stack = spawner.stack([layer])
boxes = [spawner.create(stack, BoxLimits(disk_bytes=1 << 20, pids=50)) for _ in range(3)]
held = [Connection(box.socket) for box in boxes]
for one in held:
    one.run(Exec(("/bin/sh", "-c", "trap '' TERM; (sleep 1000 &) ; exit 0"), env={}))
spawner.usage(boxes[0].kit).freeze()
if children == "fork" and os.fork() == 0:
    time.sleep(1000)
facts = {
    "spawner": spawner.process.pid,
    "boxes": [box.pid for box in boxes],
    "places": [str(place.path) for place in spawner.places],
}
print(json.dumps(facts), flush=True)
time.sleep(1000)
"""


class Driver:
    """A program that has jails and is about to be killed."""

    def __init__(self, leases: Path, layer: Path, children: str = "") -> None:
        words = [sys.executable, "-c", DRIVER, str(leases), str(layer), children]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        facts = json.loads(self.process.stdout.readline())
        self.spawner: int = facts["spawner"]
        self.boxes: list[int] = facts["boxes"]
        self.places = [Path(path) for path in facts["places"]]
        self.helpers = _children(self.spawner) - set(self.boxes)
        self.everybody = {self.spawner, *self.boxes, *self.helpers}
        for box in self.boxes:
            self.everybody |= _children(box)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def _children(pid: int) -> set[int]:
    try:
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return set()


def _lives(pid: int) -> bool:
    return lease.start_of(pid) is not None


def within(seconds: float, what: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def driver(able: None, leases: Path, layer: Path) -> Iterator[Driver]:
    started = Driver(leases, layer)
    yield started
    started.kill()
    within(20, lambda: not any(map(_lives, (*started.helpers, started.spawner))))
    sweep(leases)  # of a test that failed half way


def everything_gone(driver: Driver, leases: Path) -> Callable[[], bool]:
    return lambda: (
        not any(map(_lives, driver.everybody))
        and not any(place.exists() for place in driver.places)
        and not any(leases.iterdir())
    )


def test_a_killed_driver_leaves_nothing_at_all(driver: Driver, leases: Path) -> None:
    assert all(place.is_dir() for place in driver.places)
    driver.kill()
    assert within(20, everything_gone(driver, leases))
    assert sweep(leases) == Swept()


def test_a_child_that_the_killed_driver_forked_keeps_nothing_alive(
    able: None, leases: Path, layer: Path
) -> None:
    driver = Driver(leases, layer, "fork")
    forked = _children(driver.process.pid) - {driver.spawner}
    try:
        driver.kill()
        assert within(20, everything_gone(driver, leases))
    finally:
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_a_killed_spawner_takes_its_jails_along_and_leaves_nothing(
    driver: Driver, leases: Path
) -> None:
    os.kill(driver.spawner, signal.SIGKILL)
    gone = everything_gone(driver, leases)
    driver.everybody.discard(driver.spawner)  # a zombie of the driver's until that looks
    assert within(20, gone)


def test_when_all_are_killed_at_once_a_sweep_leaves_nothing(driver: Driver, leases: Path) -> None:
    for pid in (*driver.helpers, driver.spawner):
        os.kill(pid, signal.SIGKILL)
    assert within(20, lambda: not any(map(_lives, (*driver.helpers, driver.spawner))))
    assert sweep(leases) == Swept(), "the driver lives: its lease is not swept"
    driver.kill()
    looked = sweep(leases, dry_run=True)
    assert looked.leases == 1
    assert looked.cgroups >= len(driver.places)
    swept = sweep(leases)
    assert swept.leases == 1
    assert swept.cgroups == looked.cgroups
    assert within(20, everything_gone(driver, leases))
    assert sweep(leases) == Swept()


def test_a_killed_helper_ends_the_spawner_rather_than_leaving_it_crippled(
    driver: Driver, leases: Path
) -> None:
    for pid in driver.helpers:
        if Path(f"/proc/{pid}/comm").read_text() == "excise-kits\n":
            os.kill(pid, signal.SIGKILL)
    driver.everybody.discard(driver.spawner)
    assert within(20, everything_gone(driver, leases))


def test_a_terminals_interrupt_does_not_reach_the_spawner(driver: Driver) -> None:
    everybody = (driver.spawner, *driver.helpers, *driver.boxes)
    assert driver.process.pid not in {os.getsid(pid) for pid in everybody}
    assert driver.process.pid not in {os.getpgid(pid) for pid in everybody}


def test_a_live_lease_is_never_swept(spawner: Spawner, leases: Path) -> None:
    assert sweep(leases) == Swept()
    assert sweep(leases, dry_run=True) == Swept()
    assert [folder.name for folder in leases.iterdir()] == [spawner.lease.name]


def test_what_is_half_made_is_swept_once_its_maker_is_dead(able: None, leases: Path) -> None:
    mine = f".new-{os.getpid()}-{lease.start_of(os.getpid())}-0"
    for name in (mine, ".new-4194304-1-0"):
        (leases / name).mkdir(parents=True)
    assert sweep(leases).leases == 1
    assert [folder.name for folder in leases.iterdir()] == [mine]


def test_cgroups_whose_lease_was_removed_by_hand_are_swept_once_their_driver_is_dead(
    able: None, leases: Path
) -> None:
    space = Path("/proc/self/ns/pid").stat().st_ino
    dead, elsewhere = f"4194304-1-{space}-aa", "4194304-1-1-aa"
    living = f"{os.getpid()}-{lease.start_of(os.getpid())}-{space}-aa"
    made = {name: cgroups.make(discover(), name) for name in (dead, elsewhere, living)}
    try:
        (made[dead][0].path / "box-1").mkdir()
        victim = subprocess.Popen(["sleep", "100"])
        (made[dead][0].path / "box-1/cgroup.procs").write_text(str(victim.pid))
        assert sweep(leases, dry_run=True).processes >= 1
        sweep(leases)
        assert victim.wait() == -signal.SIGKILL
        assert not any(place.path.exists() for place in made[dead])
        kept = (*made[elsewhere], *made[living])
        assert all(place.path.is_dir() for place in kept)
    finally:
        for those in made.values():
            cgroups.remove(those)


def test_a_forged_note_leads_a_sweep_to_no_other_cgroup(able: None, leases: Path) -> None:
    target = next((place.path for place in discover().places), None)
    if target is None:
        pytest.skip("no cgroups here")
    folder = leases / "4194304-1-0"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    (folder / "cgroups").write_text(f"memory:{target}\nmemory:{target}/excise-other\n")
    assert sweep(leases) == Swept(leases=1)
    assert target.is_dir()
