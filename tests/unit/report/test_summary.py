"""A study of written-down times gives exactly the values one can work out by hand."""

from __future__ import annotations

import math

import msgspec
import pytest

from excise.measure.record import OWN_PROGRAMS, Cell, Noise, Noted
from excise.report.figures.common import provenance
from excise.report.figures.load import ramps
from excise.report.figures.look import NotDrawn
from excise.report.load_tables import loads
from excise.report.summary import summarise
from excise.report.tables import main
from excise.report.units import NONE
from excise.report.words import completeness, finding

BARE = Cell(label="bare", substrate="local", workload="T0")
DOCKER = Cell(label="docker", substrate="docker", workload="T0")


def written(build, *, blocks: int = 6, **docker: object):
    """Bare: 1 + 1 + 20 + 2 + 1 ms; docker: 100 + 10 + 20 + 3 + 7 + 30 ms."""
    bare = build.times(create=1, ready=1, work=(20.0,), slowdown=0, dispatch=2, cleanup=1)
    box = build.times(
        create=100, ready=10, work=(20.0,), slowdown=3, dispatch=7, cleanup=30, **docker
    )
    trials = [
        t for b in range(blocks) for t in (build.trial(BARE, b, bare), build.trial(DOCKER, b, box))
    ]
    return build.head((BARE, DOCKER), blocks=blocks), trials


def test_every_component_is_what_was_written_down(build) -> None:
    summary = summarise(*written(build))
    parts = summary.cell("docker", "T0").parts
    assert parts.stack() == pytest.approx(
        {
            "queue": 0,
            "create": 0.1,
            "ready": 0.01,
            "set_up": 0,
            "work": 0.02,
            "slowdown": 0.003,
            "dispatch": 0.007,
            "gap": 0,
            "cleanup": 0.03,
        }
    )
    assert sum(parts.stack().values()) == pytest.approx(parts.total)


def test_tax_is_everything_that_the_bare_process_did_not_need(build) -> None:
    cell = summarise(*written(build)).cell("docker", "T0")
    assert cell.work_mean.estimate == pytest.approx(0.020)
    assert cell.tax_mean.estimate == pytest.approx(0.150)
    assert cell.tax_share.estimate == pytest.approx(0.150 / 0.170)


def test_no_share_is_above_all_of_it(build) -> None:
    head, trials = written(build, blocks=2)
    tiny = build.times(create=1, ready=1, work=(20.0,), slowdown=0, dispatch=1, cleanup=0)
    apart = [build.trial(DOCKER, t.block, tiny) if (t.cell, t.block) == (DOCKER.name, 0) else t for t in trials]  # fmt: skip
    share = summarise(head, apart).cell("docker", "T0").tax_share
    assert 0 <= share.low < share.estimate < share.high == 1.0


def test_tti_is_create_and_ready_and_the_episode_has_no_clean_up(build) -> None:
    cell = summarise(*written(build)).cell("docker", "T0")
    assert cell.tti_p50.estimate == pytest.approx(0.110)
    assert cell.episode_p50.estimate == pytest.approx(0.140)
    assert cell.total_mean.estimate == pytest.approx(0.170)


def test_the_ratio_to_bare_is_taken_within_blocks(build) -> None:
    summary = summarise(*written(build))
    cell = summary.cell("docker", "T0")
    assert cell.episode_vs_bare.estimate == pytest.approx(0.140 / 0.024)
    assert [r.ratio.estimate for r in summary.ratios if r.metric == "episode"] == [
        pytest.approx(0.140 / 0.024)
    ]


def test_what_cannot_be_separated_is_not_known_and_never_zero(build) -> None:
    cell = summarise(*written(build, inside=False)).cell("docker", "T0")
    assert cell.parts.dispatch is None
    assert cell.parts.slowdown is None
    assert cell.dispatch_per_action is None
    assert cell.parts.acts() == pytest.approx({"work": 0.020, "unsplit": 0.010})


def test_without_a_baseline_work_is_not_known(build) -> None:
    head, trials = written(build)
    summary = summarise(head, [t for t in trials if t.substrate == "docker"])
    cell = summary.cell("docker", "T0")
    assert cell.tax_mean is None
    assert cell.parts.acts() == pytest.approx({"acting": 0.023, "dispatch": 0.007})
    assert "no_baseline" in {d.kind for d in summary.doubts}


def test_failures_enter_quantiles_as_never_and_stay_out_of_means(build) -> None:
    head, trials = written(build)
    bad = [build.broken(DOCKER, b) for b in range(4)]
    kept = [t for t in trials if not (t.substrate == "docker" and t.block < 4)]
    cell = summarise(head, [*kept, *bad]).cell("docker", "T0")
    assert (cell.n, cell.ok, cell.failures) == (6, 2, {"substrate_error": 4})
    assert math.isinf(cell.tti_p50.estimate)
    assert cell.total_mean.estimate == pytest.approx(0.170)


def test_every_failure_is_listed_with_what_it_said(build) -> None:
    summary = summarise(build.head((DOCKER,), blocks=1), [build.broken(DOCKER, 0)])
    (failed,) = summary.failures
    assert (failed.cell, failed.outcome, failed.phase) == ("docker/T0", "substrate_error", "create")
    assert "the engine went away" in failed.message


def test_warm_ups_are_counted_and_otherwise_ignored(build) -> None:
    head, trials = written(build)
    slow = build.trial(DOCKER, -1, build.times(create=9000), warm_up=True)
    summary = summarise(head, [slow, *trials])
    assert summary.warm_ups == 1
    assert summary.cell("docker", "T0").warm_ups == 1
    assert summary.cell("docker", "T0").n == 6
    assert summary.cell("docker", "T0").tti_p50.estimate == pytest.approx(0.110)


def test_a_record_whose_marks_contradict_each_other_is_a_failure(build) -> None:
    head, trials = written(build)
    first = trials[1]
    torn = msgspec.structs.replace(first, marks=first.marks | {"ready": 0})
    cell = summarise(head, [torn, *(t for t in trials if t is not first)]).cell("docker", "T0")
    assert cell.failures == {"conservation": 1}


def test_the_line_through_three_lengths_is_the_one_written_down(build) -> None:
    head, trials = build.study(("bare", "docker"), spread=0.0, blocks=3)
    summary = summarise(head, trials)
    fit = summary.fit("docker", "episode")
    per_action = (4 * 3 + 2 * 30 + 2 * 3.1 + 2 * 217) / 10 + 1.5 + 62 + 0.01
    assert fit.lengths == (10, 50, 150)
    assert fit.per_action.estimate == pytest.approx(per_action / 1000)
    assert fit.fixed.estimate == pytest.approx((420 + 85 + 109 + 62) / 1000)
    assert fit.direct_per_action == pytest.approx(fit.per_action.estimate)
    assert fit.direct_fixed == pytest.approx(fit.fixed.estimate)
    assert fit.lack_of_fit == pytest.approx(0, abs=1e-9)


def test_hours_of_a_million_are_the_mean_over_3600(build) -> None:
    summary = summarise(*build.study(("bare", "docker"), spread=0.0, blocks=2))
    row = next(h for h in summary.hours if h.label == "docker")
    assert row.actions == 150
    assert row.sandbox.estimate == pytest.approx(1e6 * row.latency.estimate / 3600)
    thinking = 1e6 * (row.latency.estimate + 150 * 4) / 3600
    assert row.occupied["4"].estimate == pytest.approx(thinking)
    tax = summary.cell("docker", "K150").tax_mean.estimate
    assert row.tax.estimate == pytest.approx(1e6 * tax / 3600)


def test_nothing_is_projected_from_the_totals_of_an_emulated_machine(build) -> None:
    head, trials = build.study(("bare", "docker", "vm"), spread=0.0, blocks=2)
    facts = {"isolation": "vm", "emulated": "yes", "version": "7.2"}
    head = msgspec.structs.replace(head, substrates={**head.substrates, "vm": facts})
    real = summarise(*build.study(("bare", "docker"), spread=0.0, blocks=2))
    summary = summarise(head, trials)
    assert "vm" in summary.compared
    assert {h.label for h in summary.hours} == {p.label for p in summary.projected}
    assert "vm" not in {h.label for h in summary.hours}
    assert summary.spreads == real.spreads
    (doubt,) = [d for d in summary.doubts if d.kind == "emulated"]
    assert "nothing is projected from its totals" in doubt.advice
    row = next(row for row in main(summary).rows if row[0].text == "vm")
    assert row[1] == ("vm", "emulated")
    assert [each.text for each in row[-2:]] == [NONE, NONE]
    assert "vm (emulated) 7.2" in provenance(summary)


def test_the_twin_is_compared_with_bare_and_nothing_else(build) -> None:
    summary = summarise(*build.study(("bare", "bare-again", "docker"), spread=0.0, blocks=6))
    assert summary.aa.estimate == pytest.approx(1.0)
    assert summary.compared == ("bare", "docker")


def test_open_loop_trials_are_told_apart_from_the_others(build) -> None:
    head, trials = written(build)
    burst = Cell(label="docker", substrate="docker", workload="T0", load="burst:4")
    waited = [build.trial(burst, b, build.times(queue=50.0 * b), load="burst:4") for b in range(4)]
    summary = summarise(head, [*trials, *waited])
    (load,) = summary.loads
    assert (load.load, load.n, load.failed) == ("burst:4", 4, 0)
    assert load.tti_p50.estimate == pytest.approx(0.110 + 0.075)
    assert summary.cell("docker", "T0").n == 6


def burst(build, *, late_ms: float = 0.0, fail: int = 0):
    """Four sandboxes due at once, ready one after the other, on docker and on bare; some of docker's failed."""
    both = [
        Cell(label=s, substrate=k, workload="T0", load="burst:4")
        for s, k in (("bare", "local"), ("docker", "docker"))
    ]
    trials = []
    for cell in both:
        for b in range(4):
            times = build.times(queue=late_ms, create=100 * (b + 1), ready=10, cleanup=90)
            t = build.trial(cell, b, times, load="burst:4", study="written-down")
            start = t.marks["due"]
            marks = {k: v - start + 10**12 for k, v in t.marks.items()}
            trials.append(msgspec.structs.replace(t, marks=marks))
    kept = len(trials) - fail
    failed = [msgspec.structs.replace(t, outcome="timeout") for t in trials[kept:]]
    return build.head(tuple(both), blocks=5), [*trials[:kept], *failed]


def test_a_study_of_loads_alone_tells_of_them_and_doubts_nothing_it_cannot_have(build) -> None:
    summary = summarise(*burst(build))
    assert (summary.planned, summary.measured) == (0, 0)
    assert (summary.loads_planned, summary.loads_measured, summary.finished) == (8, 8, True)
    assert summary.labels == ("bare", "docker")
    assert {d.kind for d in summary.doubts} == {"single_session"}
    load = summary.loads[1]
    assert (load.label, load.n, load.failed, load.void) == ("docker", 4, 0, False)
    assert (load.first_s, load.last_s) == pytest.approx((0.110, 0.410))
    assert load.answered == pytest.approx((0.110, 0.210, 0.310, 0.410))
    assert load.asked == (0.0,) * 4
    assert load.per_second == pytest.approx(4 / (0.410 + 0.026 + 0.090))
    assert load.tti_p50.estimate == load.service_p50.estimate == pytest.approx(0.260)
    assert finding(summary) == (
        "Under burst:4 all sandboxes were ready: bare after 410 ms, docker after 410 ms."
    )


def test_a_load_whose_generator_was_late_is_void_and_says_no_time(build) -> None:
    summary = summarise(*burst(build, late_ms=5.0))
    assert all(x.void for x in summary.loads)
    assert [d.kind for d in summary.doubts].count("late_generator") == 2
    (row, _) = loads(summary).rows
    assert {cell.text for cell in row[4:11]} == {"void"}
    assert isinstance(ramps(summary), NotDrawn)


def test_failures_under_load_never_answer(build) -> None:
    summary = summarise(*burst(build, fail=3))
    load = summary.loads[1]
    assert load.failures == {"timeout": 3}
    assert load.tti_p50.estimate == math.inf
    assert load.per_second == pytest.approx(1 / (0.410 + 0.026 + 0.090))
    assert "never" in {cell.text for cell in loads(summary).rows[1]}


def test_an_unfinished_study_of_loads_says_so(build) -> None:
    head, trials = burst(build)
    assert "4 of 8" in completeness(summarise(head, trials[:4]))


def test_disturbed_trials_are_counted(build) -> None:
    head, trials = written(build)
    noisy = [msgspec.structs.replace(t, noise=Noise(steal_share=0.05, load1=3.0)) for t in trials]
    summary = summarise(head, noisy)
    assert summary.noise["steal_over_1_percent"] == 12
    assert "steal" in {d.kind for d in summary.doubts}


def test_a_cold_cache_has_a_row_of_its_own_and_moves_no_warm_one(build) -> None:
    head, trials = written(build)
    cold = Cell(label="docker", substrate="docker", workload="T0", cache="cold-page")
    slow = build.times(create=900, ready=10, work=(20.0,), slowdown=33, dispatch=7, cleanup=30)
    more = [build.trial(cold, b, slow, cache="cold-page") for b in range(6)]
    both = msgspec.structs.replace(head, cells=(*head.cells, cold))
    summary = summarise(both, [*trials, *more])
    warm = summarise(head, trials)
    assert summary.cell("docker", "T0") == warm.cell("docker", "T0")
    (row,) = [c for c in summary.cells if c.variant == "cold-page"]
    assert (row.label, row.n) == ("docker", 6)
    assert row.tti_p50.estimate == pytest.approx(0.910)
    assert row.work_mean.estimate == pytest.approx(0.020)
    assert row.tax_mean.estimate == pytest.approx(0.900 + 0.010 + 0.033 + 0.007 + 0.030)


def test_limits_that_a_sandbox_does_not_see_are_doubted(build) -> None:
    head, trials = written(build)
    seen = {"inside_cores": "2", "inside_cpus": "2", "inside_pids": "512"}
    limits = {"cpus": 1.0, "memory_bytes": 2147483648, "pids": 512}
    told = {"docker": {**head.substrates["docker"], **seen}, "bare": {"inside_cpus": "none"}}
    other = msgspec.structs.replace(head, substrates=told, limits=limits)
    doubts = [d for d in summarise(other, trials).doubts if d.kind == "other_limits"]
    assert [d.text for d in doubts] == ["sandboxes of docker see cpus 2 instead of 1"]


def test_a_study_without_any_trial_has_a_summary(build) -> None:
    summary = summarise(build.head((BARE, DOCKER), blocks=5), [])
    assert (summary.measured, summary.planned, summary.finished) == (0, 10, False)
    assert summary.cell("docker", "T0").tti_p50 is None


def claimed(summary) -> dict[str, str]:
    return {c.id: c.verdict for c in summary.claims}


def test_two_engines_of_containers_are_one_of_the_papers_substrates(build) -> None:
    work = ("T0", "K10:attrs-1417", "K150:attrs-1417")
    alike = claimed(summarise(*build.study(("bare", "docker", "podman"), work, blocks=6)))
    apart = claimed(summarise(*build.study(("bare", "docker", "vm"), work, blocks=6)))
    for claim in ("two-orders", "hours-spread", "gap-narrows"):
        assert alike[claim] == "not testable here"
        assert apart[claim] != "not testable here"


def test_the_spread_of_hours_is_one_of_means(build) -> None:
    summary = summarise(*build.study(("bare", "docker", "vm"), ("K150:attrs-1417",), blocks=6))
    (claim,) = [c for c in summary.claims if c.id == "hours-spread"]
    means = [summary.cell(s, "K150").total_mean.estimate for s in ("vm", "docker")]
    assert claim.figures[0][1].estimate == pytest.approx(means[0] / means[1])


def kinds(summary) -> list[str]:
    return [d.kind for d in summary.doubts]


def test_a_busy_machine_is_the_first_thing_said(build) -> None:
    head, trials = written(build)
    head = msgspec.structs.replace(head, doubts=(Noted(kind="golden", text="x", advice="y"),))
    loud = [msgspec.structs.replace(t, noise=Noise(other_share=0.4)) for t in trials]
    assert kinds(summarise(head, loud))[:2] == ["busy", "golden"]
    assert "busy" not in kinds(summarise(head, trials))


def test_other_programs_and_impossible_cpu_times_and_far_lengths_are_doubted(build) -> None:
    head, trials = build.study(("bare", "docker"), ("T0", "K10:attrs-1417"), blocks=3)
    assert {"other_programs", "cpu_conservation"}.isdisjoint(kinds(summarise(head, trials)))
    other = {"docker": {"programs": OWN_PROGRAMS}}
    assert "other_programs" in kinds(
        summarise(msgspec.structs.replace(head, substrates=other), trials)
    )
    overdrawn = msgspec.structs.replace(trials[-1], noise=Noise(cpu_s=2.1, span_s=1.0))
    assert "cpu_conservation" in kinds(summarise(head, [*trials[:-1], overdrawn]))
    (far,) = [d for d in summarise(head, trials).doubts if d.kind == "extrapolated"]
    assert "25, 50, 64, 100, 150, 200, 300" in far.text
