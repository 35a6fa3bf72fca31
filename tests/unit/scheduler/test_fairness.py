"""Quotas: all places given, nobody above what it asked for, and the poorest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from excise.scheduler.fairness import quotas

counts = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9))


@given(counts, counts, st.integers(0, 30))
def test_every_place_is_given_while_anybody_waits(waiting, running, free):
    given_ = quotas(waiting, running, free)
    assert sum(given_.values()) == min(free, sum(waiting.values()))
    assert all(given_.get(o, 0) <= waiting.get(o, 0) for o in waiting)


@given(counts, counts, st.integers(0, 30))
def test_nobody_is_given_a_place_while_one_with_less_still_waits(waiting, running, free):
    given_ = quotas(waiting, running, free)
    has = {o: running.get(o, 0) + n for o, n in given_.items()}
    short = [has[o] for o in given_ if given_[o] < waiting[o]]
    fed = [has[o] for o in given_ if given_[o] > 0]
    assert not short or not fed or max(fed) <= min(short) + 1


def test_twice_the_weight_is_twice_the_share():
    assert quotas({"a": 99, "b": 99}, {}, 30, {"a": 2.0}) == {"a": 20, "b": 10}


def test_who_holds_much_already_waits_for_the_others():
    assert quotas({"a": 5, "b": 5}, {"a": 4}, 4) == {"a": 0, "b": 4}


@given(counts, counts, st.integers(0, 29))
def test_one_more_place_takes_nothing_from_anybody(waiting, running, free):
    fewer, more = (quotas(waiting, running, n) for n in (free, free + 1))
    assert all(fewer[o] <= more[o] for o in fewer)
