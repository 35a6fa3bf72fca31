"""What a box wrote outlives it as a layer, and any number of boxes stand on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from excise.errors import SandboxGone
from excise.jail.spawner import Spawner

from .conftest import Make

LIST = "cd /; find etc root tmp home -xdev -printf '%p %y %m %U:%G %s %l\\n' | sort"


def test_a_fork_has_the_files_and_goes_its_own_way(make: Make, spawner: Spawner) -> None:
    box = make()
    box.says("mkdir -p /root/deep/er; echo one > /root/deep/er/file; chmod 640 /root/deep/er/file")
    tree = box.says(LIST)
    left = spawner.snapshot(box.box.number)
    forks = [make(on=left.stack) for _ in range(3)]
    assert [fork.says(LIST) for fork in forks] == [tree] * 3
    forks[0].says("echo changed > /root/deep/er/file; rm -r /root/deep/er")
    assert forks[1].says("cat /root/deep/er/file") == "one"
    assert make(on=left.stack).says(LIST) == tree


@pytest.mark.parametrize(
    "change",
    [
        "rm /etc/passwd",
        "rm -r /etc && mkdir /etc && echo new > /etc/only",
        "mv /etc /etc2 && mkdir /etc && echo x > /etc/only && cp -r /etc2 /root/copy",
        "mkdir -p /usr/share/x && mv /usr/share /usr/share2 && ls /usr/share2/x",
        "ln -s /nowhere /root/link; ln /etc/hosts /root/hard; echo more >> /root/hard",
        "mkfifo /root/pipe; touch -d 2001-02-03 /root/old; chown 1000:1001 /root/old",
        "rm -r /root; echo 'not a folder' > /root",
    ],
)
def test_deleted_renamed_and_replaced_things_stay_so(
    make: Make, spawner: Spawner, change: str
) -> None:
    listing = "cd /; find . -xdev -not -path './proc*' -not -path './dev*' -printf '%p %y %m %U:%G %T@ %l\\n' | sort"
    box = make()
    box.says(change)
    tree = box.says(listing)
    left = spawner.snapshot(box.box.number)
    child = make(on=left.stack)
    assert child.says(listing) == tree
    grandchild = make(on=spawner.snapshot(child.box.number).stack)
    assert grandchild.says(listing) == tree


def test_a_long_line_of_snapshots_keeps_everything(make: Make, spawner: Spawner) -> None:
    box = make()
    for step in range(40):
        box.says(f"echo {step} > /root/{step}; rm -f /root/{step - 2}")
        box = make(on=spawner.snapshot(box.box.number).stack)
    assert box.says("ls /root | sort -n | tr '\\n' ' '").split()[-2:] == ["38", "39"]
    assert box.sh("cat /root/37")[0] != 0


def test_a_snapshot_ends_the_box_and_whoever_runs_in_it(make: Make, spawner: Spawner) -> None:
    box = make()
    box.says("sleep 1000 & exit 0")
    spawner.snapshot(box.box.number)
    assert spawner.end_of(box.box.number) is not None
    assert not Path(f"/proc/{box.box.pid}").exists()
    with pytest.raises(SandboxGone):
        spawner.snapshot(box.box.number)


def test_a_forgotten_snapshot_lives_on_below_its_boxes_and_stacks(
    make: Make, spawner: Spawner
) -> None:
    box = make()
    box.says("echo kept > /root/x")
    left = spawner.snapshot(box.box.number)
    child = make(on=left.stack)
    spawner.forget(left.snapshot)
    assert child.says("cat /root/x") == "kept"
    assert make(on=left.stack).says("cat /root/x") == "kept"


def test_what_a_box_wrote_can_be_read_from_the_host(make: Make, spawner: Spawner) -> None:
    box = make()
    box.says("echo seen > /root/x")
    upper = spawner.upper(box.box.number)
    left = spawner.snapshot(box.box.number)
    frozen = spawner.frozen(left.snapshot)
    for folder in (upper, frozen):
        assert Path(f"/proc/self/fd/{folder}/root/x").read_text() == "seen\n"
        os.close(folder)


def test_a_snapshot_can_stand_on_another_stack_by_its_number(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    box = make()
    box.says("echo upper > /root/x")
    left = spawner.snapshot(box.box.number)
    stack = spawner.stack([left.snapshot, str(layer)])
    assert make(on=stack).says("cat /root/x") == "upper"
