import pytest

from excise.tax.claims import ARCHETYPES, CLAIMS, FIGURES, Verdict, judge
from excise.tax.interval import Interval, exactly

PAPER = {
    ("act_share", "container"): Interval(0.8, 0.75, 0.85),
    **{
        ("start_share", a): exactly(s)
        for a, s in {"container": 0.1, "kubernetes": 0.3, "vm": 0.5}.items()
    },
    **{
        ("tti", a, "T0"): exactly(s)
        for a, s in {"hosted": 0.18, "container": 0.6, "kubernetes": 3.0, "vm": 19.8}.items()
    },
    ("spread", "T0"): Interval(110, 105, 115),
    ("episode_ratio", "vm", "hosted", "T0"): Interval(108, 102, 113),
    ("episode_ratio", "vm", "hosted", "T2"): Interval(1.9, 1.8, 2.0),
    ("episode_ratio", "kubernetes", "container", "T0"): Interval(5, 4, 6),
    ("episode_ratio", "kubernetes", "container", "T2"): Interval(1.2, 1.1, 1.3),
    ("tail", "kubernetes", "T0"): Interval(1.1, 1.05, 1.2),
    ("tail", "hosted", "T0"): Interval(2.0, 1.6, 2.5),
    **{
        (metric, a, k): Interval(v, v * 0.9, v * 1.1)
        for metric in ("fixed_share", "amortised")
        for a in ("container", "hosted", "kubernetes", "vm")
        for k, v in {"10": 0.6, "150": 0.1}.items()
    },
    ("length_ratio", "10"): Interval(6.0, 5.0, 7.0),
    ("length_ratio", "150"): Interval(1.8, 1.7, 1.9),
}
ALWAYS = {"table1-rollout", "table1-10ms", "table1-100ms", "table2-gap"}
TESTED = [c for c in CLAIMS if c.needs]


def verdicts(figures):
    return {f.id: f.verdict for f in judge(figures)}


def test_the_papers_own_figures_confirm_every_claim():
    assert set(verdicts(PAPER).values()) == {Verdict.CONFIRMED}


def test_without_figures_only_the_arithmetic_is_testable():
    found = judge({})
    assert {f.id for f in found if f.verdict is not Verdict.NOT_TESTABLE} == ALWAYS
    assert all(f.missing for f in found if f.verdict is Verdict.NOT_TESTABLE)
    assert all(f.figure is None for f in found if f.missing)


@pytest.mark.parametrize("claim", TESTED, ids=lambda c: c.id)
def test_equal_substrates_confirm_no_claim(claim):
    assert claim.judge(dict.fromkeys(claim.needs, Interval(0.4, 0.3, 0.5))).verdict is (
        Verdict.NOT_CONFIRMED
    )


@pytest.mark.parametrize("claim", TESTED, ids=lambda c: c.id)
def test_figures_without_bounds_confirm_no_claim(claim):
    unbounded = {k: Interval(PAPER[k].estimate, None, None) for k in claim.needs}
    assert claim.judge(unbounded).verdict is Verdict.NOT_CONFIRMED


@pytest.mark.parametrize("claim", TESTED, ids=lambda c: c.id)
def test_one_missing_figure_makes_a_claim_untestable_and_is_named(claim):
    missing = claim.needs[-1]
    found = claim.judge({k: v for k, v in PAPER.items() if k != missing})
    assert found.verdict is Verdict.NOT_TESTABLE
    assert found.missing == (missing,)


def test_a_verdict_comes_with_its_figure():
    found = {f.id: f for f in judge(PAPER)}
    assert found["hours-spread"].figure == PAPER["length_ratio", "150"]
    assert found["hours-spread"].unit == "x"
    assert found["table1-rollout"].figure == exactly(1_000_000 / 3600)


def test_claims_are_told_apart_and_use_known_metrics_and_archetypes():
    assert len({c.id for c in CLAIMS}) == len(CLAIMS)
    known = set(ARCHETYPES.values())
    for key in (k for c in CLAIMS for k in c.needs):
        assert key[0] in FIGURES
        assert all(part in known or part in {"T0", "T2", "10", "150"} for part in key[1:])
    assert set(FIGURES) - {k[0] for c in CLAIMS for k in c.needs} == set()
