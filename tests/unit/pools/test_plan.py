"""Planning: within the budget at every moment, at rest after a while, and never more for less."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.errors import InputError
from excise.pools.demand import Wish
from excise.pools.plan import Ageing, Idle, Plan, Stock, plan
from excise.pools.size import Budget, copies, poisson_tail
from tests.unit.scheduler.trees import SIZE, path_of, turns

wishes = st.dictionaries(
    turns,
    st.tuples(
        st.floats(0, 1),
        st.floats(0, 12),
        st.integers(0, 4),
        st.integers(0, 3),
    ),
    max_size=6,
).map(lambda d: [Wish(path_of(t), *numbers) for t, numbers in d.items()])
budgets = st.builds(
    Budget, sandboxes=st.integers(1, 25), disk_bytes=st.none() | st.integers(0, 12 * SIZE)
)
ENOUGH = Budget(sandboxes=10_000)


def keys(kept):
    return [copy.key for copy in kept]


@given(wishes, budgets)
@settings(deadline=None)
def test_what_is_worth_keeping_fits_the_budget(asked, budget):
    kept = copies(asked, budget, create_s=0.5)
    assert len(kept) <= budget.most
    on_disk = {s.key: s.size_bytes for c in kept for s in c.path}
    assert budget.disk_bytes is None or sum(on_disk.values()) <= budget.disk_bytes


@given(wishes, st.integers(1, 20), st.integers(0, 10), st.integers(0, 12), st.integers(0, 5))
@settings(deadline=None)
def test_a_larger_budget_keeps_the_same_and_more(asked, count, more, stages, more_stages):
    small = Budget(count, disk_bytes=stages * SIZE)
    large = Budget(count + more, disk_bytes=(stages + more_stages) * SIZE)
    fewer, many = (keys(copies(asked, b, create_s=0.5)) for b in (small, large))
    assert many[: len(fewer)] == fewer


@given(wishes)
@settings(deadline=None)
def test_copies_come_in_the_order_of_their_worth(asked):
    worths = [c.worth_s for c in copies(asked, ENOUGH, create_s=0.5)]
    assert worths == sorted(worths, reverse=True)


@given(wishes)
@settings(deadline=None)
def test_pins_and_announcements_are_kept_whatever_the_demand(asked):
    there = Counter(keys(copies(asked, ENOUGH, create_s=0.5)))
    for wish in asked:
        assert there[wish.key] >= max(wish.pinned, wish.expected)


@given(wishes, st.integers(0, 5), st.floats(0.1, 5))
@settings(deadline=None)
def test_more_demand_never_keeps_fewer_of_the_same(asked, which, factor):
    if not asked:
        return
    one = asked[which % len(asked)]
    more = [replace(w, per_s=w.per_s * (1 + factor)) if w is one else w for w in asked]
    before, after = (Counter(keys(copies(a, ENOUGH, create_s=0.5))) for a in (asked, more))
    assert after[one.key] >= before[one.key]


def test_enough_are_kept_that_a_miss_is_rare():
    wish = Wish(path_of((0, 1)), per_s=3.0)
    kept = len(copies([wish], ENOUGH, create_s=0.5, partial=False))
    window_s = 0.5 + sum(s.price_s for s in wish.path)
    assert poisson_tail(3.0 * window_s, kept + 1) <= 0.01 < poisson_tail(3.0 * window_s, kept)


def test_a_burst_is_remembered_though_the_rate_is_tiny():
    kept = copies([Wish(path_of((0, 1)), per_s=1e-6, peak=16)], ENOUGH, create_s=0.5)
    assert len(kept) >= 16


def test_many_rare_environments_share_a_stage_that_none_would_keep_alone():
    rare = [Wish(path_of((0, 1, i)), per_s=0.0003) for i in range(60)]
    kept = copies(rare, ENOUGH, create_s=0.1)
    assert kept[0].path == path_of((0, 1))
    assert "shared" in kept[0].why
    assert {len(c.path) for c in kept} <= {1, 2}
    assert copies(rare, ENOUGH, create_s=0.1, partial=False) == ()


def test_every_copy_says_why_it_is_worth_keeping():
    wish = Wish(path_of((0, 1)), per_s=2.0, expected=2, pinned=1)
    whys = [c.why for c in copies([wish], ENOUGH, create_s=0.5)]
    assert whys[0] == "pinned, 1 of 1"
    assert whys[1] == "announced, 2 of 2"
    assert whys[2].startswith("exact: taken with a chance of")


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"sandboxes": 0}, "at least 1"),
        ({"sandboxes": 4, "memory_bytes": 5, "copy_bytes": 10}, "less than one sandbox"),
    ],
)
def test_a_budget_that_serves_nobody_is_refused(numbers, says):
    with pytest.raises(InputError, match=says):
        Budget(**numbers)


def test_memory_limits_the_count():
    assert Budget(100, memory_bytes=35, copy_bytes=10).most == 3


@given(st.floats(0.01, 30), st.integers(0, 60))
def test_the_poisson_tail_falls_and_is_a_probability(mean, n):
    assert 1 >= poisson_tail(mean, n) >= poisson_tail(mean, n + 1) >= 0


stocks = st.builds(
    lambda idle, making, held, leaving: Stock(
        tuple(Idle(f"s{i}", path_of(t)[-1].key, since) for i, (t, since) in enumerate(idle)),
        {path_of(t)[-1].key: n for t, n in making.items()},
        held,
        leaving,
    ),
    st.lists(st.tuples(turns, st.floats(0, 100)), max_size=8),
    st.dictionaries(turns, st.integers(0, 3), max_size=3),
    st.integers(0, 6),
    st.integers(0, 3),
)


@given(stocks, wishes, budgets, st.integers(0, 3))
@settings(deadline=None)
def test_a_plan_never_goes_over_the_budget(stock, asked, budget, room):
    worthy = copies(asked, budget, create_s=0.5)
    made = plan(stock, worthy, budget, now_s=100.0, room=room)
    assert stock.total + len(made.fill) <= max(budget.most, stock.total)
    remaining = stock.total - stock.leaving - len(made.leave)
    forced = stock.held + sum(stock.making.values())
    assert remaining + room <= max(budget.most, forced + room)


@given(stocks, wishes, budgets)
@settings(deadline=None)
def test_what_leaves_is_idle_and_named_once_and_says_why(stock, asked, budget):
    made = plan(stock, copies(asked, budget, create_s=0.5), budget, now_s=100.0)
    names = [one.name for one in made.leave]
    assert set(names) <= {i.name for i in stock.idle}
    assert len(set(names)) == len(names)
    assert all(one.why for one in made.leave)


@given(stocks, wishes, budgets)
@settings(deadline=None)
def test_nothing_is_made_twice(stock, asked, budget):
    worthy = copies(asked, budget, create_s=0.5)
    first = plan(stock, worthy, budget, now_s=0.0)
    making = Counter(stock.making) + Counter(c.key for c in first.fill)
    again = plan(replace(stock, making=making), worthy, budget, now_s=0.0)
    assert again.fill == ()


def carried_out(stock: Stock, made: Plan, now_s: float, count: int) -> Stock:
    gone = {one.name for one in made.leave}
    stay = [i for i in stock.idle if i.name not in gone]
    new = [Idle(f"n{count}-{j}", c.key, now_s, now_s) for j, c in enumerate(made.fill)]
    return Stock((*stay, *new), {}, stock.held, 0)


@given(stocks, wishes, budgets)
@settings(deadline=None, max_examples=60)
def test_repeated_it_comes_to_rest(stock, asked, budget):
    worthy = copies(asked, budget, create_s=0.5)
    now_s, ageing = 100.0, Ageing(grace_s=30.0, oldest_s=1e9)
    for count in range(4):
        made = plan(stock, worthy, budget, now_s=now_s, ageing=ageing)
        stock, now_s = carried_out(stock, made, now_s, count), now_s + 60.0
    assert plan(stock, worthy, budget, now_s=now_s, ageing=ageing) == Plan()
    room = max(0, budget.most - stock.held)
    kept = Counter(keys(worthy[:room]))
    assert stock.held > budget.most or Counter(i.key for i in stock.idle) == kept


@given(stocks, wishes, budgets)
@settings(deadline=None)
def test_a_stage_that_fails_is_not_made_ahead(stock, asked, budget):
    worthy = copies(asked, budget, create_s=0.5)
    barred = {c.key for c in worthy[::2]}
    made = plan(stock, worthy, budget, now_s=0.0, barred=barred)
    assert not barred & {c.key for c in made.fill}


def test_an_idle_copy_grows_old_though_it_is_worth_keeping():
    path = path_of((0, 1))
    stock = Stock((Idle("old", path[-1].key, 0.0, 0.0),))
    worthy = copies([Wish(path, 0.0, pinned=1)], ENOUGH, create_s=0.5)
    made = plan(stock, worthy, ENOUGH, now_s=3600.0)
    assert [(one.name, one.why) for one in made.leave] == [("old", "too old")]
    assert keys(made.fill) == [path[-1].key]


def test_one_too_many_stays_for_a_while_before_it_goes():
    stock = Stock((Idle("extra", "k", 10.0, 10.0),))
    assert plan(stock, (), ENOUGH, now_s=39.0).leave == ()
    assert plan(stock, (), ENOUGH, now_s=40.0).leave[0].why == "not worth keeping any more"


def test_a_rollout_that_waits_gets_the_place_of_the_least_worthy():
    dear, cheap = path_of((0, 2, 2)), path_of((0, 0))
    wished = [Wish(dear, 9.0), Wish(cheap, 9.0)]
    budget = Budget(2)
    worthy = copies(wished, budget, create_s=0.5, partial=False)
    stock = Stock((Idle("d", dear[-1].key, 0.0), Idle("c", cheap[-1].key, 0.0)))
    [leave] = plan(stock, worthy, budget, now_s=1.0, room=1).leave
    assert leave.why == "its place is needed"
    assert leave.name != {i.key: i.name for i in stock.idle}[worthy[0].key]
