"""Assignment: the least work in all, for everybody at once, in fairness and in time."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from excise.pools.stage import keys_of, whole_price_s, work_left_s
from excise.scheduler.assign import assign, assignment
from excise.scheduler.fairness import quotas
from excise.scheduler.idle import Idle, Worker
from excise.scheduler.waiting import Waiting, Wanted
from tests.unit.scheduler.trees import path_of, paths, wanted, workers


def saved(path, worker):
    return whole_price_s(path) - work_left_s(worker.keys, path)


def most_that_can_be_saved(waiting, idle):
    """By trying every way to pair them."""
    if len(waiting) > len(idle):
        pairs = ([*zip(ws, idle, strict=True)] for ws in itertools.permutations(waiting, len(idle)))
    else:
        pairs = (
            [*zip(waiting, ws, strict=True)] for ws in itertools.permutations(idle, len(waiting))
        )
    return max(sum(saved(r.path, w) for r, w in pairing) for pairing in pairs)


@given(wanted, workers)
@settings(max_examples=150, deadline=None)
def test_no_assignment_saves_more(waiting, idle):
    alone = [Wanted(r.name, r.path) for r in waiting]
    matches = assignment(alone, idle)
    found = sum(saved(m.wanted.path, m.worker) for m in matches)
    assert math.isclose(found, most_that_can_be_saved(alone, idle), abs_tol=1e-9)


@given(wanted, workers)
def test_as_many_are_matched_as_there_are_on_both_sides_and_none_twice(waiting, idle):
    matches = assignment(waiting, idle)
    assert len(matches) == min(len(waiting), len(idle))
    assert len({m.wanted.name for m in matches}) == len(matches)
    assert len({m.worker.name for m in matches}) == len(matches)


@given(wanted, workers)
def test_a_match_says_truly_what_is_left(waiting, idle):
    for match in assignment(waiting, idle):
        assert match.left_s == work_left_s(match.worker.keys, match.wanted.path)
        assert match.worker.name in str(match)


@given(wanted, workers, st.fixed_dictionaries({"ann": st.integers(0, 5), "bob": st.integers(0, 5)}))
def test_each_owner_gets_its_quota(waiting, idle, running):
    asked = {o: sum(r.owner == o for r in waiting) for o in ("ann", "bob", "cy")}
    expected = quotas(asked, running, len(idle))
    matches = assignment(waiting, idle, running=running)
    for owner, share in expected.items():
        assert sum(m.wanted.owner == owner for m in matches) == share


@given(wanted, workers)
def test_the_same_question_has_the_same_answer(waiting, idle):
    assert assignment(waiting, idle) == assignment(waiting, idle)


@given(paths, st.lists(paths, min_size=1, max_size=8))
def test_a_lone_rollout_goes_where_least_is_left(want, held):
    idle = [Worker(f"w{i}", keys_of(p)) for i, p in enumerate(held)]
    [match] = assignment([Wanted("r", want)], idle)
    assert match.left_s == min(work_left_s(w.keys, want) for w in idle)


def test_a_specialist_is_left_for_its_own_work():
    image, repository = path_of((0, 1)), path_of((0, 1, 2))
    idle = [Worker("specialist", keys_of(repository)), Worker("plain", keys_of(image))]
    [match] = assignment([Wanted("r", path_of((0, 1, 1)))], idle)
    assert match.worker.name == "plain"


def test_a_host_that_holds_many_paths_serves_each_of_them():
    one, other = path_of((0, 1, 2)), path_of((0, 2, 1))
    host = Worker("host", tuple(dict.fromkeys(keys_of(one) + keys_of(other))))
    for want in (one, other):
        [match] = assignment([Wanted("r", want)], [host, Worker("bare")])
        assert (match.worker, match.left_s) == (host, 0)


@given(st.lists(st.sampled_from([(0, 1), (0, 2)]), min_size=40, max_size=60), st.integers(1, 8))
def test_nobody_is_served_many_places_behind_its_turn(stream, limit):
    """One worker, warm for whatever came last; others keep coming: still everybody's turn comes."""
    waiting, idle, served = Waiting(), Idle(), []
    waiting.add(Wanted("cold", path_of((0, 0))))
    held = path_of((0, 1))
    for i, turns in enumerate(stream):
        waiting.add(Wanted(f"r{i}", path_of(turns)))
        idle.add(Worker("w", keys_of(held)))
        [match] = assign(waiting, idle, limit=limit)
        served.append(match.wanted.name)
        held = match.wanted.path
    assert served.index("cold") <= limit
    places = {f"r{i}": i + 1 for i in range(len(stream))} | {"cold": 0}
    assert all(turn - places[name] <= limit + 1 for turn, name in enumerate(served))


def test_one_that_withdraws_leaves_nothing_behind():
    waiting = Waiting()
    waiting.add(Wanted("r", path_of((0, 1, 2))))
    waiting.remove("r")
    assert len(waiting) == 0
    assert not waiting.wants(path_of((0, 1, 2))[-1].key)
    assert waiting.counts() == {}
    assert not waiting.wants(path_of((0,))[0].key)


def test_a_match_is_taken_out_of_both_and_the_rest_stays():
    waiting, idle = Waiting(), Idle()
    for i in range(3):
        waiting.add(Wanted(f"r{i}", path_of((0, i))))
    idle.add(Worker("w", keys_of(path_of((0, 2)))))
    [match] = assign(waiting, idle)
    assert match.wanted.name == "r2"
    assert {w.name for w in waiting} == {"r0", "r1"}
    assert len(idle) == 0
    assert "r2" not in waiting
