"""Attaching to cgroups is made fast on the host for as long as a spawner lives, and nobody else notices."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from excise.jail.spawner import Spawner
from excise.jail.sweep import ATTACH, sweep

pytestmark = [
    pytest.mark.alone,
    pytest.mark.usefixtures("able"),
    pytest.mark.skipif(
        not Path("/sys/fs/cgroup/unified").is_mount(),
        reason="no old hierarchies beside the unified",
    ),
]


def option() -> bool:
    listed = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return any(kind == "cgroup2" and "favordynmods" in said for _, _, kind, said, *_ in listed)


@contextmanager
def nobody_else() -> Iterator[bool]:
    """Whether no spawner lives, and none begins before we are done."""
    try:
        fd = os.open(ATTACH, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


def test_while_a_spawner_lives_attaching_is_fast_and_no_hierarchy_of_ours_shows(
    tmp_path: Path,
) -> None:
    spawner = Spawner.start(leases=tmp_path)
    try:
        assert spawner.facts & spawner.facts.FAST_ATTACH
        assert option()
        assert ATTACH.read_text() in {"", "1"}
        held = subprocess.run(["cat", "/proc/self/cgroup"], capture_output=True, check=True).stdout
        assert b"excise" not in held
    finally:
        spawner.close()


def test_after_a_kill_of_everything_a_sweep_sets_the_host_back(tmp_path: Path) -> None:
    before = option() and not ATTACH.exists()  # somebody else's wish
    code = (
        "import sys, time; from pathlib import Path; from excise.jail.spawner import Spawner; "
        "s = Spawner.start(leases=Path(sys.argv[1])); print(s.process.pid, flush=True); time.sleep(1000)"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert driver.stdout is not None
    spawner = int(driver.stdout.readline())
    children = Path(f"/proc/{spawner}/task/{spawner}/children").read_text().split()
    for pid in (driver.pid, spawner, *map(int, children)):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*map(int, children), spawner, driver.pid):
        os.kill(pid, signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    while any(Path(f"/proc/{pid}/cgroup").exists() and _lives(int(pid)) for pid in children):
        time.sleep(0.01)
    assert ATTACH.read_text() == "1" or before
    sweep(tmp_path)
    with nobody_else() as alone:
        if alone:
            assert not ATTACH.exists()
            assert option() == before


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
