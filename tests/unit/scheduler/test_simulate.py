"""The simulation: conserved to the second, right where one can work it out by hand, and the scheduler's own code."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.pools.stage import whole_price_s
from excise.scheduler.loads import Forest, Prices, losses, rollouts, uniform, zipf
from excise.scheduler.rivals import policies
from excise.scheduler.simulate import Fleet, LeastWorkLeft, Rollout, simulate
from excise.scheduler.waiting import LATE, PASSED_BY
from tests.unit.scheduler.trees import path_of, turns

POLICIES = policies()
PRICES = Prices(image_s=20.0, repo_s=2.0, dependencies_s=15.0)
FOREST = Forest(images=4, repos=3, commits=5)


def a_load(count=300, weights=None, **more):
    return rollouts(count, FOREST, PRICES, weights or zipf(FOREST.tasks), seed=1, **more)


loads = st.lists(st.tuples(st.floats(0, 30), turns, st.floats(0, 10)), min_size=1, max_size=25).map(
    lambda ones: [Rollout(f"t{i}", at, path_of(t), w) for i, (at, t, w) in enumerate(sorted(ones))]
)
fleets = st.builds(
    Fleet,
    workers=st.integers(1, 5),
    keeps=st.integers(1, 3),
    losses=st.lists(st.tuples(st.floats(0, 60), st.just(0), st.floats(0.1, 20)), max_size=3).map(
        tuple
    ),
)


@pytest.mark.parametrize("name", POLICIES)
@given(load=loads, fleet=fleets)
@settings(max_examples=25, deadline=None)
def test_every_rollout_is_served_once_and_no_work_is_lost(name, load, fleet):
    made = simulate(load, fleet, POLICIES[name]())
    assert math.isclose(made.worked_s, sum(r.work_s for r in load), abs_tol=1e-6)
    assert len(made.waits_s) == len(load) + made.restarted
    assert all(wait >= 0 for wait in made.waits_s)


@pytest.mark.parametrize("name", POLICIES)
def test_a_lone_worker_does_it_all_one_after_the_other(name):
    load = [Rollout(f"t{i}", 0.0, path_of((0, i % 2)), 1.0) for i in range(4)]
    made = simulate(load, Fleet(1), POLICIES[name]())
    assert made.makespan_s == pytest.approx(4.0 + made.prepared_s)


@pytest.mark.parametrize("name", POLICIES)
def test_with_a_worker_each_everybody_waits_for_his_own_preparation(name):
    load = a_load(20)
    made = simulate(load, Fleet(20), POLICIES[name]())
    assert made.makespan_s == pytest.approx(max(r.work_s + whole_price_s(r.path) for r in load))


def test_one_worker_prepares_each_environment_once_where_order_is_free():
    images = [path_of((0, i)) for i in (0, 1, 2)]
    load = [Rollout(f"t{i}", 0.0, images[i % 3], 1.0) for i in range(30)]
    ours = simulate(load, Fleet(1), LeastWorkLeft())
    rival = simulate(load, Fleet(1), POLICIES["round robin"]())
    base = path_of((0,))
    once = whole_price_s(base) + sum(whole_price_s(p[1:]) for p in images)
    assert ours.prepared_s == pytest.approx(once)
    assert rival.prepared_s > 5 * ours.prepared_s


@pytest.mark.parametrize("weights", [zipf, uniform])
@pytest.mark.parametrize("keeps", [1, 3])
def test_least_work_left_prepares_least_and_ends_first(weights, keeps):
    load, fleet = a_load(weights=weights(FOREST.tasks)), Fleet(12, keeps)
    outcomes = {name: simulate(load, fleet, make()) for name, make in POLICIES.items()}
    ours = outcomes.pop("least work left")
    assert all(ours.prepared_s <= 1.02 * other.prepared_s for other in outcomes.values())
    assert all(ours.makespan_s <= 1.02 * other.makespan_s for other in outcomes.values())


@pytest.mark.parametrize("seed", range(5))
def test_nobody_that_came_early_is_passed_by_more_than_the_rule_allows(seed):
    """The first of a burst found no queue, so `LATE` is all that locality may cost it."""
    load = rollouts(600, FOREST, PRICES, zipf(FOREST.tasks), seed=seed)
    order = []

    class Recorded(LeastWorkLeft):
        def pairs(self):
            made = super().pairs()
            order.extend(name for name, _ in made)
            return made

    simulate(load, Fleet(3), Recorded())
    for place, name in enumerate(order):
        came = int(name.removeprefix("t"))
        assert place - came <= max(LATE, PASSED_BY * came) + 3


def test_a_lost_worker_comes_back_empty_and_its_rollout_begins_anew():
    path = path_of((0, 1))
    load = [Rollout("t", 0.0, path, 10.0)]
    made = simulate(load, Fleet(1, losses=((5.0, 0, 3.0),)), LeastWorkLeft())
    assert made.restarted == 1
    assert made.makespan_s == pytest.approx(8.0 + whole_price_s(path) + 10.0)
    assert made.prepared_s == pytest.approx(2 * whole_price_s(path))


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_load_has_the_same_outcome(name):
    load, fleet = a_load(100), Fleet(5, losses=losses(5, share=0.4, within_s=50, away_s=5, seed=1))
    first, second = (simulate(load, fleet, policies()[name]()) for _ in range(2))
    assert first == second


def test_a_forest_shares_what_neighbours_have_in_common():
    first, second, other = (FOREST.path(task, PRICES) for task in (0, 1, FOREST.tasks - 1))
    assert [s.key for s in first][:2] == [s.key for s in second][:2]
    assert not {s.key for s in first} & {s.key for s in other}
    assert len({FOREST.path(t, PRICES)[-1].key for t in range(FOREST.tasks)}) == FOREST.tasks


def test_a_stream_comes_at_its_rate_and_favourites_change():
    stream = a_load(2000, rate_per_s=4.0)
    assert stream[-1].at_s == pytest.approx(500, rel=0.1)
    still, churned = a_load(600), a_load(600, churn_every=100)
    favourites = [_favourites(load) for load in (still, churned)]
    assert len(favourites[0]) < len(favourites[1])


def _favourites(load):
    """The most wanted task of each hundred."""
    hundreds = ([r.path[-1].key for r in load[i : i + 100]] for i in range(0, len(load), 100))
    return {max(set(keys), key=keys.count) for keys in hundreds}
