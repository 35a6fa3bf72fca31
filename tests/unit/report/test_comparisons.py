"""What stands beside the ratios: companions, trials that were disturbed, sessions, and the gate on claims."""

from __future__ import annotations

import msgspec
import pytest

from excise.measure.merge import merge
from excise.measure.record import Noise
from excise.measure.store import Study
from excise.report.comparison_tables import effects, sessions, undisturbed
from excise.report.summary import summarise
from excise.report.tables import cells
from excise.tax.compare import companions, holm

LABELS = ("bare", "docker", "kubernetes")


@pytest.fixture(scope="module")
def twelve(build):
    return summarise(*build.study(LABELS, ("T0", "T1:attrs-1417"), blocks=12))


def test_every_declared_ratio_has_its_companions_adjusted_as_one_family(build, twelve) -> None:
    declared = {(r.a, r.b, r.workload, r.metric) for r in twelve.ratios}
    assert {(e.a, e.b, e.workload, e.metric) for e in twelve.effects} == declared
    assert ("kubernetes", "docker", "T0", "tti") in declared
    _, trials = build.study(LABELS, ("T0", "T1:attrs-1417"), blocks=12)
    tti = {
        s: {t.block: t.marks["ready"] - t.marks["requested"] for t in trials if t.block >= 0 and t.cell == f"{s}/T0"}
        for s in ("docker", "kubernetes")
    }  # fmt: skip
    alone = companions(tti["kubernetes"], tti["docker"])
    here = next(
        e for e in twelve.effects if (e.a, e.b, e.workload, e.metric) == ("kubernetes", "docker", "T0", "tti")
    )  # fmt: skip
    assert here.cliffs_delta == alone.cliffs_delta == 1.0
    assert here.shift.estimate == pytest.approx(alone.shift.estimate / 1e9)
    assert here.wilcoxon_p > alone.wilcoxon_p
    assert here.wilcoxon_p <= len(declared) * alone.wilcoxon_p
    assert holm({"a": alone.wilcoxon_p})["a"] == alone.wilcoxon_p
    assert here.p95_ratio is None
    assert len(effects(twelve).rows) == len(declared)


def test_a_ratio_of_tails_and_a_p99_need_their_numbers_of_trials(build, twelve) -> None:
    assert twelve.cell("docker", "T0").tti_p99 is None
    assert "tti p99" not in cells(twelve).columns
    many = summarise(*build.study(("bare", "docker"), ("T0",), blocks=400, warm_ups=0))
    p99 = many.cell("docker", "T0").tti_p99
    assert p99.bounded
    assert p99.low < p99.estimate < p99.high
    assert "tti p99" in cells(many).columns
    assert all(e.p95_ratio.bounded for e in many.effects)


def test_medians_stand_with_and_without_the_trials_that_lost_time(build) -> None:
    head, trials = build.study(("bare", "docker"), ("T0",), blocks=6, spread=0.0)
    slow = build.times(create=1000.0)
    cell = head.cells[1]
    stolen = [
        build.trial(cell, t.block, slow, noise=Noise(steal_share=0.2))
        if t.cell == "docker/T0" and t.block in {0, 1, 2, 3}
        else t
        for t in trials
    ]
    summary = summarise(head, stolen)
    (row,) = summary.undisturbed
    assert (row.label, row.n, row.disturbed) == ("docker", 6, 4)
    assert row.tti.estimate == pytest.approx(1.010)
    assert row.tti_without.estimate == pytest.approx(0.505)
    assert summary.cell("docker", "T0").tti_p50.estimate == row.tti.estimate
    assert len(undisturbed(summary).rows) == 1
    assert not undisturbed(summarise(head, trials)).rows


def test_a_merged_study_tells_its_sessions_apart(build) -> None:
    parts = []
    for name, factor in (("a", 1.0), ("b", 1.5), ("c", 2.0)):
        head, trials = build.study(("bare", "docker"), ("T0",), blocks=6, spread=0.0, warm_ups=0)
        docker = [t for t in trials if t.cell == "docker/T0"]
        slower = build.times(create=420 * factor, ready=85 * factor, work=(1.2 * factor,))
        slow = [build.trial(head.cells[1], t.block, slower) for t in docker]
        trials = [t for t in trials if t.cell != "docker/T0"] + slow
        parts.append(Study(msgspec.structs.replace(head, id=name), trials))
    merged = merge(parts)
    summary = summarise(merged.record, merged.trials)
    (row,) = [r for r in summary.repeated if r.label == "docker"]
    assert row.over_bare
    assert row.found.ratio.n == 3
    first, _, third = row.found.by_session
    assert third / first == pytest.approx(2.0, rel=0.02)
    assert row.found.between > 0.2
    assert row.found.within == pytest.approx(0.0, abs=1e-9)
    assert {r.text for row in sessions(summary).rows for r in row} >= {"docker", "3"}
    assert "single_session" not in {d.kind for d in summary.doubts}
    assert not summarise(parts[0].record, parts[0].trials).repeated


def test_what_the_aa_gate_lets_pass_as_noise_confirms_no_claim(build) -> None:
    labels = ("bare", "bare-again", "docker", "hosted")
    head, trials = build.study(labels, ("T0",), blocks=12)
    calm = {c.id: c.verdict for c in summarise(head, trials).claims}
    apart = [
        build.trial(
            head.cells[1], t.block, build.times(create=10, ready=12, work=(12.0,), cleanup=1)
        )
        if t.cell == "bare-again/T0" and t.block >= 0
        else t
        for t in trials
    ]
    noisy = summarise(head, apart)
    assert "aa_failed" in {d.kind for d in noisy.doubts}
    assert calm["hosted-first"] == "confirmed"
    assert {c.id: c.verdict for c in noisy.claims}["hosted-first"] == "not confirmed"
