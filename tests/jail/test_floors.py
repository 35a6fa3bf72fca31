"""What jails stand on is made ahead for whoever asks again: as fresh, of the size that was asked for, and let go of."""

from __future__ import annotations

from pathlib import Path

from excise.jail.control import BoxLimits
from excise.jail.spawner import Spawner

from .conftest import Inside, Make
from .test_death import within

SMALL, LARGE = 1 << 20, 8 << 20


def open_files(spawner: Spawner) -> int:
    return sum(1 for _ in Path(f"/proc/{spawner.process.pid}/fd").iterdir())


def size_kib(box: Inside) -> int:
    return int(box.says("df -k / | tail -1 | tr -s ' ' | cut -d' ' -f2"))


def test_each_jail_has_the_size_that_was_asked_for_and_nothing_of_the_one_before(
    make: Make, spawner: Spawner
) -> None:
    made = []
    for size in (SMALL, SMALL, SMALL, LARGE, SMALL, LARGE, LARGE, LARGE):
        box = make(disk_bytes=size)
        assert size_kib(box) == size >> 10
        assert box.sh("test -e /mine")[0] == 1
        assert box.sh("echo > /mine")[0] == 0
        made.append(box)
    assert {box.says("ls /mine") for box in made} == {"/mine"}


def test_a_stack_that_is_dropped_leaves_nothing_made_ahead(spawner: Spawner, layer: Path) -> None:
    before = open_files(spawner)
    stack = spawner.stack([str(layer)])
    for _ in range(3):
        box = spawner.create(stack, BoxLimits(disk_bytes=SMALL))
        box.socket.close()
        spawner.wait_gone(box.number)
    spawner.unstack(stack)
    assert within(5, lambda: open_files(spawner) <= before)
