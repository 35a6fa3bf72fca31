"""Work left: what a path still lacks, whoever holds what of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from excise.errors import InputError
from excise.pools.stage import Kind, Stage, checked, keys_of, shared, whole_price_s, work_left_s
from tests.unit.scheduler.trees import path_of, paths


@given(paths)
def test_whoever_was_warmed_for_it_has_nothing_left(want):
    assert work_left_s(keys_of(want), want) == 0


@given(paths)
def test_whoever_holds_nothing_has_all_of_it_left(want):
    assert work_left_s((), want) == whole_price_s(want)
    assert shared((), want) == 0


@given(paths, paths)
def test_what_is_left_and_what_is_shared_are_the_whole(have, want):
    depth = shared(keys_of(have), want)
    left = work_left_s(keys_of(have), want)
    assert math.isclose(left + whole_price_s(want[:depth]), whole_price_s(want))
    assert keys_of(have)[:depth] == keys_of(want)[:depth]


@given(paths, paths)
def test_holding_more_never_leaves_more(have, want):
    lefts = [work_left_s(keys_of(have)[:n], want) for n in range(len(have) + 1)]
    assert lefts == sorted(lefts, reverse=True)


def test_a_deep_stage_stands_for_all_below_it():
    want = path_of((0, 1, 2))
    assert work_left_s({want[-1].key}, want) == 0


@pytest.mark.parametrize("price", [math.nan, math.inf, -1.0])
def test_a_price_that_cannot_be_is_refused(price):
    with pytest.raises(InputError, match="no sane price"):
        checked([Stage(Kind.BASE, "a", price)])


def test_a_path_without_stages_or_with_a_key_twice_is_refused():
    with pytest.raises(InputError, match="at least one stage"):
        checked([])
    with pytest.raises(InputError, match="twice"):
        checked([Stage(Kind.BASE, "a", 1.0), Stage(Kind.IMAGE, "a", 1.0)])
