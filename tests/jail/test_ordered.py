"""Jails that are ordered for later: made when there is time, and gone when nobody wants them any more."""

from __future__ import annotations

import signal
from pathlib import Path

from excise.jail.control import BoxLimits
from excise.jail.spawner import Spawner

from .conftest import Inside, Make


def test_a_jail_that_was_ordered_ahead_is_made_behind_ones_back(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    coming = spawner.order(spawner.stack([str(layer)]), BoxLimits(disk_bytes=1 << 20))
    assert not spawner.is_made(coming), "it is for later, and competes with nobody now"
    make()
    box = Inside(spawner, spawner.collect(coming))
    assert spawner.is_made(coming)
    assert box.connection.ping() > 0
    box.connection.close()


def test_what_was_ordered_and_is_not_wanted_any_more_leaves_nothing(
    spawner: Spawner, layer: Path
) -> None:
    stack = spawner.stack([str(layer)])
    first, second = (spawner.order(stack, BoxLimits(disk_bytes=1 << 20)) for _ in range(2))
    spawner.cancel(first)  # not begun
    box = spawner.collect(second)
    box.socket.close()
    for each in (first, second):
        end = spawner.wait_gone(each.number)
        assert end is not None
        assert end.end == (-signal.SIGKILL if each is first else 0)
        assert not spawner.lives(each.number)
