import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.clock import FakeClock
from excise.errors import InputError, Phase, SubstrateError
from excise.measure import load
from excise.substrates.fake import Fake, Latencies

COUNT = st.integers(1, 200)
GAP = st.floats(0.001, 100)


@given(COUNT, COUNT.filter(lambda n: n < 40), GAP, st.integers())
def test_arrivals_are_in_order_complete_and_the_same_for_a_seed(n, waves, gap, seed):
    for shape, expected in (
        (f"burst:{n}", n),
        (f"staggered:{n}:{gap}", n),
        (f"poisson:{n}:{gap}", n),
        (f"wave:{n}:{waves}:{gap}", n * waves),
    ):
        times = load.arrivals(shape, seed)
        assert len(times) == expected
        assert all(0 <= a <= b for a, b in pairwise(times))
        assert times == load.arrivals(shape, seed)


def test_shapes_are_what_they_are_called():
    assert load.arrivals("burst:3", 1) == (0, 0, 0)
    assert load.arrivals("staggered:3", 1) == (0, 0.2, 0.4)
    assert load.arrivals("wave:2:2:1.5", 1) == (0, 0, 1.5, 1.5)
    poisson = load.arrivals("poisson:2000:10", 1)
    assert poisson[-1] == pytest.approx(200, rel=0.1)
    assert poisson != load.arrivals("poisson:2000:10", 2)


@pytest.mark.parametrize(
    "shape",
    [
        "",
        "burst",
        "burst:0",
        "burst:x",
        "burst:-1",
        "burst:1.5",
        "burst:1:2",
        "storm:3",
        "poisson:3",
        "wave:3:2",
        "wave:2:1.5:1",
        "staggered:3:0",
        "burst:nan",
        "burst:inf",
        "closed:4",
        "closed:2:1.5",
    ],
)
def test_an_unknown_shape_says_which_there_are(shape):
    with pytest.raises(InputError, match="known: burst:N"):
        load.arrivals(shape, 1)


def test_more_than_the_host_can_bear_is_refused():
    with pytest.raises(InputError, match="at most"):
        load.arrivals("burst:100000", 1)


def run(rig, shape, **fake):
    clock = FakeClock(7)
    cell = rig.cell(load=shape)
    setting = rig.setting(rig.listed("true"), clock, the_cell=cell, **fake)
    return asyncio.run(load.run_load(setting, clock=clock, study="s", session=1, seed=3))


def test_an_open_loop_asks_on_time_whatever_the_answers_do(rig):
    trials = run(rig, "staggered:5:0.1", latencies=Latencies(create_s=10))
    dues = [t.marks["due"] for t in trials]
    assert [b - a for a, b in pairwise(dues)] == [100_000_000] * 4
    assert [t.marks["requested"] for t in trials] == dues
    assert [t.key for t in trials] == [(1, i, "fake/W@staggered:5:0.1") for i in range(5)]
    assert {t.load for t in trials} == {"staggered:5:0.1"}


def test_a_burst_is_summed_up_from_the_first_intended_time(rig):
    summary = load.summarise(run(rig, "burst:4", latencies=Latencies(create_s=2, destroy_s=1)))
    assert (summary.asked, summary.succeeded, summary.success_rate) == (4, 4, 1)
    assert summary.first_ready_s == summary.all_ready_s == 2
    assert summary.ended_s == 3
    assert summary.per_second == pytest.approx(4 / 3)
    assert not summary.void


def test_a_burst_with_failures_has_no_time_to_all(rig):
    def fail(phase, before):
        if phase is Phase.CREATE and before == 1:
            return SubstrateError("full", substrate="fake", phase=phase)
        return None

    summary = load.summarise(run(rig, "burst:4", fail=fail))
    assert (summary.succeeded, summary.all_ready_s) == (3, None)
    assert summary.first_ready_s is not None


def test_a_generator_that_was_late_makes_the_run_void(rig):
    trials = run(rig, "burst:2")
    from msgspec.structs import replace

    marks = trials[0].marks
    late = replace(trials[0], marks=marks | {"requested": marks["due"] + 5_000_000})
    assert load.summarise([late, trials[1]]).void


def test_in_a_closed_loop_so_many_workers_are_always_busy(rig):
    trials = run(rig, "closed:2:5", latencies=Latencies(create_s=2, destroy_s=1))
    assert [t.marks["due"] == t.marks["requested"] for t in trials] == [True] * 5
    begun = sorted(t.marks["requested"] for t in trials)
    assert [(b - begun[0]) / 1e9 for b in begun] == [0, 0, 3, 3, 6]
    summary = load.summarise(trials)
    assert (summary.asked, summary.succeeded, summary.void) == (5, 5, False)
    assert summary.per_second == pytest.approx(5 / 9)


def test_a_driver_that_works_before_it_waits_does_not_make_the_generator_late(rig):
    clock = FakeClock(7)

    class Busy(Fake):
        async def create(self, spec):
            clock.advance(0.01)
            return await super().create(spec)

    setting = replace(
        rig.setting(rig.listed("true"), clock, the_cell=rig.cell(load="burst:4")),
        substrate=Busy(rig.latencies, clock=clock),
    )
    trials = asyncio.run(load.run_load(setting, clock=clock, study="s", session=1, seed=3))
    summary = load.summarise(trials)
    assert not summary.void
    assert summary.all_ready_s >= 0.04
