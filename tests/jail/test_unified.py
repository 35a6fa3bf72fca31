"""Version 2 of cgroups, as far as this host mounts it: jails are born inside their cgroup."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.jail.cgroups import WANTED, Layout, Place, parse_mounts
from excise.jail.control import BoxLimits, Fact
from excise.jail.spawner import Spawner

from .conftest import Inside, refuse


@pytest.fixture
def unified(able: None, leases: Path) -> Iterator[Spawner]:
    mounts = parse_mounts(Path("/proc/self/mountinfo").read_text())
    top = next((Path(mount.path) for mount in mounts if mount.unified), None)
    if top is None:
        refuse("no cgroup2 is mounted here")
    assert top is not None
    started = Spawner.start(layout=Layout("v2", (Place("unified", top),), ()), leases=leases)
    yield started
    started.close()


def test_every_process_of_a_jail_is_in_its_cgroup_from_the_start(
    unified: Spawner, layer: Path
) -> None:
    assert unified.facts & Fact.CGROUP2
    stack = unified.stack([str(layer)])
    box = Inside(unified, unified.create(stack, BoxLimits(disk_bytes=1 << 20)))
    folder = box.usage.folders["unified"]
    assert str(box.box.pid) in (folder / "cgroup.procs").read_text().split()
    box.says("sleep 1000 > /dev/null 2>&1 & exit 0")
    assert len((folder / "cgroup.procs").read_text().split()) >= 2
    box.usage.freeze()
    unified.destroy(box.box.number)
    end = unified.wait_gone(box.box.number)
    assert end is not None
    box.connection.close()
    parent = folder.parent
    unified.close()
    assert not parent.exists()


def test_many_jails_in_turn_each_find_a_cgroup_that_was_never_killed(
    unified: Spawner, layer: Path
) -> None:
    stack = unified.stack([str(layer)])
    for _ in range(12):
        box = Inside(unified, unified.create(stack, BoxLimits(disk_bytes=1 << 20)))
        assert box.connection.ping() > 0
        box.usage.thaw()
        box.connection.close()


CONTAINED = """
import subprocess, sys
from pathlib import Path
from excise.errors import SubstrateUnavailable
from excise.jail.blocking import Jail
from excise.types import Action

with Jail(leases=Path(sys.argv[1])) as jail:
    try:
        jail.create()
    except SubstrateUnavailable as error:
        remedy = error.message.partition(": mkdir")[2]
    else:
        sys.exit("a cgroup with processes handed controllers down")
    subprocess.run(["bash", "-c", "mkdir" + remedy], check=True)
    with jail.create() as box:
        print(box.run(Action.shell("echo works")).text)
"""


def test_what_is_said_to_the_root_of_a_container_helps_it(able: None, leases: Path) -> None:
    """As engines set them up on hosts of version 2: its own cgroup is all that it sees, and it is in it."""
    top = Path("/sys/fs/cgroup")
    controllers = top / "cgroup.controllers"
    if not controllers.exists() or not set(WANTED).issubset(controllers.read_text().split()):
        refuse("needs a host that has version 2 alone: lab/guest has one", "cgroup2")
    (top / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in WANTED))
    container = top / f"container-{os.getpid()}"
    container.mkdir()
    script = f'echo $$ > {container}/cgroup.procs; exec unshare -Cm bash -c "$0" "$@"'
    inside = f'umount -l {top}; mount -t cgroup2 none {top}; exec "$@"'
    words = ["bash", "-c", script, inside, "bash", sys.executable, "-c", CONTAINED, str(leases)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert (done.stdout, done.stderr) == ("works\n\n", "")
    finally:
        for each in sorted(container.rglob("*/"), reverse=True):
            each.rmdir()
        container.rmdir()
