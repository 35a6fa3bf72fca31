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


def test_a_jail_whose_place_was_taken_dies_with_the_order_for_the_next(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    stack, limits = spawner.stack([str(layer)]), BoxLimits(disk_bytes=1 << 20)
    before = spawner.create(stack, limits)
    coming = spawner.order(stack, limits, in_place_of=before.number)
    end = spawner.wait_gone(before.number)
    assert end is not None
    assert end.end == -signal.SIGKILL
    box = Inside(spawner, spawner.collect(coming))
    assert box.connection.ping() > 0
    box.connection.close()
    before.socket.close()


def test_a_destroyed_jail_is_dead_in_a_moment_though_its_client_holds_on(
    make: Make, spawner: Spawner
) -> None:
    box = make()
    spawner.destroy(box.box.number)
    spawner.destroy(box.box.number)
    end = spawner.wait_gone(box.box.number)
    assert end is not None
    assert end.end == -signal.SIGKILL


def test_more_jails_at_once_than_there_are_kits_in_stock_are_all_made(
    make: Make, spawner: Spawner
) -> None:
    boxes = [make() for _ in range(20)]
    assert all(box.connection.ping() > 0 for box in boxes)
