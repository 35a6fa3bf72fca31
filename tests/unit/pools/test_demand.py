"""Demand: rates that fade, bursts that are remembered longer, and what was announced."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.pools.demand import Demand
from tests.unit.scheduler.trees import path_of, turns

PATH = path_of((0, 1))


def test_a_steady_stream_is_seen_at_its_rate():
    demand = Demand(half_life_s=10.0)
    for i in range(1000):
        demand.arrived(PATH, i / 4)
    [wish] = demand.wishes(250.0)
    assert math.isclose(wish.per_s, 4.0, rel_tol=0.02)


def test_after_a_half_life_half_is_left():
    demand = Demand(half_life_s=10.0)
    for _ in range(8):
        demand.arrived(PATH, 0.0)
    first, second = (demand.wishes(t)[0].per_s for t in (0.0, 10.0))
    assert math.isclose(second, first / 2)


@given(st.integers(1, 60))
def test_the_peak_of_a_burst_is_its_size(size):
    demand = Demand()
    for _ in range(size):
        demand.arrived(PATH, 5.0)
    assert demand.wishes(5.0)[0].peak == size


def test_a_stream_slower_than_the_refill_has_no_peak_to_speak_of():
    demand = Demand()
    for i in range(100):
        demand.arrived(PATH, i * 2.0, refill_s=1.0)
    assert demand.wishes(198.0)[0].peak == 1.0


@given(st.lists(st.tuples(turns, st.floats(0, 1000)), max_size=30))
def test_what_nobody_asks_for_is_forgotten(asked):
    demand = Demand()
    for one, at_s in sorted(asked, key=lambda a: a[1]):
        demand.arrived(path_of(one), at_s)
    assert demand.wishes(1e6) == ()


def test_an_announcement_is_used_up_by_arrivals_and_ends_in_time():
    demand = Demand()
    demand.expect(PATH, 3, 0.0, within_s=60.0)
    assert demand.wishes(1.0)[0].expected == 3
    demand.arrived(PATH, 2.0)
    assert demand.wishes(2.0)[0].expected == 2
    assert demand.wishes(60.0)[0].expected == 0


def test_a_pin_stays_until_it_is_taken_back():
    demand = Demand()
    demand.pin(PATH, 2, 0.0)
    assert demand.wishes(1e6)[0].pinned == 2
    demand.pin(PATH, 0, 1e6)
    assert demand.wishes(1e6) == ()


def test_what_cannot_be_expected_or_kept_is_refused():
    demand = Demand()
    with pytest.raises(InputError, match="cannot expect -1"):
        demand.expect(PATH, -1, 0.0, 1.0)
    with pytest.raises(InputError, match="cannot keep -1"):
        demand.pin(PATH, -1, 0.0)
    with pytest.raises(InputError, match="half-life"):
        Demand(half_life_s=0)
