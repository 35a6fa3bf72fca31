from dataclasses import replace
from pathlib import Path

import pytest

from excise.tax.doubts import CellFacts, Kind, StudyFacts, doubts, first_over_rest, noise_of
from excise.tax.interval import Interval, exactly

CALM_CELL = CellFacts(
    "docker/T0", trials=100, actions=10, gap_share=0.001, drift=Interval(1.0, 0.98, 1.02)
)
CALM = StudyFacts(
    cells=(CALM_CELL,),
    steal_shares=(0.0, 0.01),
    busy_shares=(0.1, 0.25),
    aa=Interval(1.0, 0.97, 1.03),
    sessions=3,
)


def cell(**changes):
    return replace(CALM, cells=(replace(CALM_CELL, **changes),))


TROUBLE = {
    Kind.STEAL: replace(CALM, steal_shares=(0.0, 0.02)),
    Kind.BUSY: replace(CALM, busy_shares=(0.3,)),
    Kind.AA_MISSING: replace(CALM, aa=None),
    Kind.AA_FAILED: replace(CALM, aa=Interval(1.04, 1.01, 1.07)),
    Kind.AA_WIDE: replace(CALM, aa=Interval(1.0, 0.9, 1.1)),
    Kind.FEW_TRIALS: cell(trials=30),
    Kind.NO_BASELINE: replace(CALM, baseline=False),
    Kind.BORROWED_BASELINE: cell(borrowed=2),
    Kind.OTHER_PROGRAMS: replace(CALM, same_programs=False),
    Kind.CPU_CONSERVATION: replace(CALM, cpu_overdrawn=1),
    Kind.CLIPPED: cell(clipped=1),
    Kind.OVERHEAD: cell(gap_share=0.02),
    Kind.FIRST_TRIAL: cell(first_over_rest=3.0),
    Kind.DRIFT: cell(drift=Interval(1.2, 1.1, 1.3)),
    Kind.SINGLE_SESSION: replace(CALM, sessions=1),
    Kind.EMULATED: replace(CALM, emulated=("vm",)),
    Kind.FAILURES: cell(failures=1),
    Kind.UNPAIRED: cell(unpaired=4),
    Kind.EXTRAPOLATED: replace(CALM, extrapolated=(200, 300)),
    Kind.OTHER_LIMITS: replace(CALM, other_limits=(("vm", "cpus 2 instead of 1"),)),
    Kind.LATE_GENERATOR: replace(CALM, late=(("docker/T0@burst:4", 0.007),)),
}


def test_a_calm_study_gives_rise_to_no_doubt():
    assert doubts(CALM) == ()


def test_every_kind_of_doubt_is_tried_here():
    assert set(TROUBLE) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_each_trouble_gives_rise_to_its_doubt_and_no_other(kind):
    (found,) = doubts(TROUBLE[kind])
    assert found.kind is kind
    assert found.text
    assert found.advice


@pytest.mark.parametrize("kind", Kind)
def test_each_doubt_is_explained_in_the_method(kind):
    page = (Path(__file__).parents[3] / "docs" / "method.md").read_text("utf-8")
    assert f"`{kind}`" in page


def test_a_drift_downwards_is_a_drift_and_an_uncertain_one_is_none():
    assert doubts(cell(drift=Interval(0.8, 0.7, 0.9)))[0].kind is Kind.DRIFT
    assert doubts(cell(drift=Interval(1.2, 0.9, 1.5))) == ()
    assert doubts(cell(drift=Interval(2.0, None, None))) == ()


def test_only_a_gate_that_failed_makes_noise_of_differences():
    assert noise_of(None) == noise_of(Interval(1.0, 0.96, 1.04)) == 1.0
    assert noise_of(Interval(1.0, None, None)) == 1.0
    assert noise_of(Interval(1.1, 1.05, 1.2)) == 1.2
    assert noise_of(Interval(0.9, 0.8, 1.01)) == 1 / 0.8


def test_an_aa_pair_without_an_interval_is_no_aa_pair():
    assert doubts(replace(CALM, aa=Interval(1.0, None, None)))[0].kind is Kind.AA_MISSING
    assert doubts(replace(CALM, aa=exactly(1.0))) == ()


def test_load_shapes_alone_need_no_aa_pair():
    assert doubts(StudyFacts(only_loads=True, sessions=3)) == ()


def test_a_doubt_names_its_figures():
    (found,) = doubts(cell(failures=3))
    assert "docker/T0" in found.text
    assert "3 of 100" in found.text


def test_a_busy_machine_comes_first_and_warns_of_containers_that_look_quick():
    busy, steal = doubts(replace(CALM, steal_shares=(0.5,), busy_shares=(0.0, 0.3, 0.4)))
    assert (busy.kind, steal.kind) == (Kind.BUSY, Kind.STEAL)
    assert "in 2 of the 3 trials" in busy.text
    assert "30%" in busy.text
    assert "may look quicker" in busy.advice


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([9.0, 3.0, 3.0, 4.0], 3.0),
        ([3.0, 3.0, 9.0], None),
        ([9.0, 3.0], None),
        ([1.0, 0.0, 0.0], None),
        ([], None),
    ],
)
def test_the_first_trial_stands_out_only_where_it_is_the_slowest(values, expected):
    assert first_over_rest(values) == expected
