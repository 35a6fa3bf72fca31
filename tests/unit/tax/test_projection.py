import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tax.projection import (
    ACTIONS,
    Lengths,
    Rollout,
    Scenario,
    constant,
    contrast,
    elasticities,
    empirical,
    from_latency,
    lognormal,
    over,
    paper_table_1,
    project,
    table_1,
    worker_hours,
)

SECONDS = st.floats(0.01, 1000)
ROLLOUTS = st.builds(
    Rollout,
    name=st.just("x"),
    once_s=SECONDS,
    per_action_s=SECONDS,
    set_up_s=SECONDS,
    tax_set_up_s=st.floats(0, 0.01),
    tax_per_action_s=st.floats(0, 0.01),
)
SCENARIOS = st.builds(
    Scenario,
    trajectories=st.floats(1e4, 1e7),
    actions=st.integers(2, 300),
    think_s=st.floats(0.01, 8),
    failure_rate=st.floats(0.001, 0.05),
    timeout_s=st.floats(1, 1000),
)


def test_the_papers_table_1_is_reproduced():
    assert [round(row.hours, 1) for row in paper_table_1()] == [277.8, 416.7, 4166.7]


def test_the_papers_table_2_is_reproduced_from_its_unrounded_latencies():
    both = contrast(from_latency("slow", 42.5196), from_latency("fast", 23.382), Scenario())
    assert round(both.slow.sandbox_hours) == 11_811
    assert round(both.fast.sandbox_hours) == 6_495
    assert round(both.sandbox_hours) == 5_316
    assert round(both.ratio, 1) == 1.8


def test_the_papers_table_2_is_met_from_its_rounded_latencies_within_their_rounding():
    both = contrast(from_latency("slow", 42.5), from_latency("fast", 23.4), Scenario())
    assert both.slow.sandbox_hours == pytest.approx(11_811, abs=14)
    assert both.fast.sandbox_hours == pytest.approx(6_495, abs=14)
    assert both.sandbox_hours == pytest.approx(5_316, abs=14)


@pytest.mark.parametrize(("think", "ratio"), [(0, 1.82), (1, 1.11), (2, 1.06), (4, 1.03)])
def test_think_time_makes_the_papers_ratio_vanish(think, ratio):
    pair = from_latency("slow", 42.5196), from_latency("fast", 23.382)
    found = contrast(*pair, Scenario(think_s=think))
    assert round(found.occupied_ratio, 2) == ratio
    assert found.ratio == pytest.approx(1.8185, abs=1e-4)


@pytest.mark.parametrize(
    ("trajectories", "slow", "fast"),
    [(10_000, 118, 65), (100_000, 1_181, 650), (10_000_000, 118_110, 64_950)],
)
def test_the_papers_figure_6_is_a_line(trajectories, slow, fast):
    pair = from_latency("slow", 42.5196), from_latency("fast", 23.382)
    found = contrast(*pair, Scenario(trajectories=trajectories))
    assert round(found.slow.sandbox_hours) == slow
    assert round(found.fast.sandbox_hours) == fast


@given(ROLLOUTS, SCENARIOS, st.floats(0.1, 10))
def test_hours_are_linear_in_the_number_of_trajectories(rollout, scenario, factor):
    more = replace(scenario, trajectories=scenario.trajectories * factor)
    for kind in ("tax_hours", "sandbox_hours", "occupied_hours"):
        once, again = (
            getattr(project(rollout, scenario), kind),
            getattr(project(rollout, more), kind),
        )
        assert again == pytest.approx(once * factor)


@given(
    ROLLOUTS,
    SCENARIOS,
    st.sampled_from(["actions", "think_s", "failure_rate", "timeout_s"]),
    st.floats(1.01, 1.5),
)
def test_hours_never_fall_when_an_input_rises(rollout, scenario, name, factor):
    more = replace(scenario, **{name: getattr(scenario, name) * factor})
    before, after = project(rollout, scenario), project(rollout, more)
    assert after.occupied_hours >= before.occupied_hours
    assert after.sandbox_hours >= before.sandbox_hours
    assert after.tax_hours >= before.tax_hours


@given(ROLLOUTS, SCENARIOS)
def test_the_tax_is_part_of_the_sandbox_which_is_part_of_the_occupied(rollout, scenario):
    found = project(rollout, scenario)
    assert found.tax_hours <= found.sandbox_hours + 1e-9
    assert found.sandbox_hours <= found.occupied_hours + 1e-9


@given(ROLLOUTS, SCENARIOS)
def test_elasticities_of_costs_and_time_outs_make_up_the_whole(rollout, scenario):
    """Hours are a sum of terms linear in these inputs, so their elasticities add up to 1."""
    found = elasticities(rollout, scenario)
    parts = ("once_s", "set_up_s", "per_action_s", "think_s", "timeout_s")
    assert sum(found[p] for p in parts) == pytest.approx(1, abs=1e-3)
    assert list(found.values()) == sorted(found.values(), key=lambda e: -abs(e))


def test_a_single_action_has_no_elasticity_of_its_length():
    assert "actions" not in elasticities(from_latency("x", 2.0, 1), Scenario(actions=1))


def test_a_failed_attempt_costs_its_time_out_and_a_repeat():
    rollout = from_latency("x", 36.0)
    found = project(rollout, Scenario(trajectories=100, failure_rate=0.5, timeout_s=36.0))
    assert found.sandbox_hours == pytest.approx(2.0)


def test_reuse_shares_what_is_paid_once_and_adds_a_reset():
    rollout = Rollout("x", once_s=10.0, per_action_s=0.1, set_up_s=2.0)
    reused = project(rollout, Scenario(actions=10, reuse=5, reset_s=0.5))
    assert reused.latency_s == pytest.approx(2 + 0.5 + 2 + 1)
    assert project(rollout, Scenario(actions=10, reset_s=0.5)).latency_s == pytest.approx(13)


def test_reuse_lowers_the_tax_by_as_much_as_the_time():
    rollout = Rollout("x", 10.0, 0.1, tax_set_up_s=0.0, tax_per_action_s=0.02)
    once = project(rollout, Scenario(3600, actions=10))
    reused = project(rollout, Scenario(3600, actions=10, reuse=5, reset_s=0.5))
    assert once.tax_hours - reused.tax_hours == pytest.approx(7.5)
    assert once.sandbox_hours - reused.sandbox_hours == pytest.approx(7.5)


def test_idle_slots_are_occupied_too():
    rollout = from_latency("x", 36.0)
    assert project(rollout, Scenario(100, utilisation=0.5)).occupied_hours == pytest.approx(2.0)


def test_lengths_beyond_the_measured_are_marked():
    rollout = Rollout("x", 1.0, 0.1, measured=(10, 50, 150))
    marked = [p.extrapolated for p in over(rollout, Scenario(), "actions", ACTIONS)]
    assert marked == [k > 150 for k in ACTIONS]


def test_without_a_baseline_there_are_no_tax_hours():
    assert project(from_latency("x", 1.0), Scenario()).tax_hours is None


def test_only_the_mean_of_the_lengths_matters():
    rollout = Rollout("x", 1.0, 0.1)
    lengths = [10, 60, 200]
    each = [project(rollout, Scenario(actions=k)).sandbox_hours for k in lengths]
    whole = project(rollout, Scenario(actions=empirical(lengths).mean)).sandbox_hours
    assert whole == pytest.approx(sum(each) / 3)


def test_lognormal_lengths_have_their_known_means():
    assert lognormal(64, 0.55).mean == pytest.approx(64 * math.exp(0.55**2 / 2))
    assert lognormal(64, 0.55, cap=10**9).mean == pytest.approx(lognormal(64, 0.55).mean)
    assert lognormal(64, 0, cap=100).mean == 64
    assert lognormal(64, 0, cap=50).mean == 50
    assert constant(7) == Lengths(7.0, "7 actions")


@given(st.floats(1, 200), st.floats(0.05, 1.5), st.integers(1, 400))
def test_a_cap_on_lengths_lowers_the_mean_and_holds_it(median, sigma, cap):
    capped = lognormal(median, sigma, cap).mean
    assert 0 < capped <= cap + 1e-9
    assert capped <= lognormal(median, sigma).mean + 1e-9


def test_the_table_of_small_delays_covers_all_lengths_and_scales():
    rows = table_1()
    assert len(rows) == (1 + 3 * 3) * 4
    ours = {(m.delay_s, m.actions, m.trajectories): m.hours for m in rows}
    assert ours[0.1, 150, 1_000_000] == worker_hours(1_000_000, 15)
    assert ours[1.0, None, 10_000] == worker_hours(10_000, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"trajectories": 0},
        {"actions": 0},
        {"think_s": -1.0},
        {"think_s": math.inf},
        {"failure_rate": 1.0},
        {"failure_rate": -0.1},
        {"timeout_s": math.nan},
        {"reuse": 0},
        {"reset_s": -1.0},
        {"utilisation": 0.0},
        {"trajectories": math.nan},
        {"trajectories": math.inf},
    ],
)
def test_impossible_scenarios_are_refused(wrong):
    with pytest.raises(InputError):
        Scenario(**wrong)


@pytest.mark.parametrize(
    "arguments",
    [(0.0,), (-1.0,), (math.nan,), (math.inf,), (1.0, 0), (1.0, 150, 1.0), (1.0, 150, -0.1)],
)
def test_impossible_latencies_are_refused(arguments):
    with pytest.raises(InputError):
        from_latency("x", *arguments)


@pytest.mark.parametrize("lengths", [[], [0], [5, -1]])
def test_impossible_lengths_are_refused(lengths):
    with pytest.raises(InputError):
        empirical(lengths)
