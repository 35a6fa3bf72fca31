"""Reasons to distrust a study, each with what to do about it. A doubt is a value, printed with every result.

The thresholds stand beside their rules. What a host cannot tell is None, and a missing fact that matters
is itself a doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from excise.tax.interval import Interval


class Kind(StrEnum):
    """Every kind of doubt; docs/method.md explains each."""

    BUSY = "busy"
    STEAL = "steal"
    AA_MISSING = "aa_missing"
    AA_FAILED = "aa_failed"
    AA_WIDE = "aa_wide"
    FEW_TRIALS = "few_trials"
    NO_BASELINE = "no_baseline"
    BORROWED_BASELINE = "borrowed_baseline"
    OTHER_PROGRAMS = "other_programs"
    CLIPPED = "clipped"
    CPU_CONSERVATION = "cpu_conservation"
    OVERHEAD = "overhead"
    FIRST_TRIAL = "first_trial"
    DRIFT = "drift"
    SINGLE_SESSION = "single_session"
    EMULATED = "emulated"
    FAILURES = "failures"
    UNPAIRED = "unpaired"
    EXTRAPOLATED = "extrapolated"
    LATE_GENERATOR = "late_generator"
    OTHER_LIMITS = "other_limits"


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is wrong, in one sentence with its figure, and what to do."""

    kind: Kind
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What the rules want to know of one cell (a substrate on a workload)."""

    name: str
    trials: int
    failures: int = 0
    actions: int = 0
    clipped: int = 0
    """Inside times that had to be cut to their action's bounds."""
    gap_share: float | None = None
    """Harness time between the actions over the trial's total, p50."""
    first_over_rest: float | None = None
    """See `first_over_rest`; of a cold cache."""
    drift: Interval | None = None
    """Second half over first half of the trials."""
    unpaired: int = 0
    """Blocks in which the cell's baseline or partner is missing."""
    borrowed: int = 0
    """Trials whose work was taken from other blocks' bare trials."""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What the rules want to know of a study. Defaults give rise to no doubt, apart from `aa` and `sessions`."""

    cells: Sequence[CellFacts] = ()
    baseline: bool = True
    """Whether there are bare trials to tell work from tax."""
    same_programs: bool = True
    """Whether the baseline ran the same interpreter and tools as the sandboxes."""
    steal_shares: Sequence[float] = ()
    busy_shares: Sequence[float] = ()
    """Share of the machine that was busy with something other than the study, per trial."""
    cpu_overdrawn: int = 0
    """Trials that used more CPU seconds than there were."""
    aa: Interval | None = None
    """Ratio of one substrate under two labels."""
    sessions: int = 1
    emulated: Sequence[str] = ()
    """Labels that stand for something else, such as a VM without hardware virtualisation."""
    extrapolated: Sequence[int] = field(default=())
    """Lengths that were projected and not measured."""
    other_limits: Sequence[tuple[str, str]] = ()
    """Labels whose sandboxes saw other limits than were asked for, and which."""
    only_loads: bool = False
    """Whether all trials ran under load shapes, which have no A/A pair."""
    late: Sequence[tuple[str, float]] = ()
    """Load runs that are void, and by how many seconds their generator was late."""


Rule = Callable[[StudyFacts], Iterator[Doubt]]

STEAL = 0.01
BUSY = 0.25
AA_WIDTH = 0.05
FEW_FOR_P95 = 72
OVERHEAD = 0.01
FIRST = 1.5
DRIFT = 0.05


def doubts(facts: StudyFacts) -> tuple[Doubt, ...]:
    """All doubts of a study, in the order of the kinds."""
    return tuple(doubt for rule in RULES for doubt in rule(facts))


def first_over_rest(values: Sequence[float]) -> float | None:
    """The first trial over the median of the others, where it is also slower than each of them."""
    if len(values) < 3 or values[0] <= max(values[1:]):
        return None
    rest = median(values[1:])
    return values[0] / rest if rest > 0 else None


def _steal(f: StudyFacts) -> Iterator[Doubt]:
    hit = sum(share > STEAL for share in f.steal_shares)
    if hit:
        yield Doubt(
            Kind.STEAL,
            f"the hypervisor took more than {STEAL:.0%} of the processor in {hit} of {len(f.steal_shares)} trials",
            "compare the figures with and without these trials; prefer a dedicated host",
        )


def _busy(f: StudyFacts) -> Iterator[Doubt]:
    hit = sum(share > BUSY for share in f.busy_shares)
    if hit:
        yield Doubt(
            Kind.BUSY,
            f"the machine was more than {BUSY:.0%} busy with something else in {hit} of the {len(f.busy_shares)} trials "
            f"that can tell (half of them: {median(f.busy_shares):.0%} or more)",
            "stop what else is running and repeat; until then read CPU seconds rather than times. Bare processes and "
            "containers are in different scheduling groups: under contention a container may look quicker than bare",
        )


def noise_of(aa: Interval | None) -> float:
    """By what factor differences may be noise: 1 where one substrate equalled itself within ±5 %, or was not tried."""
    if aa is None or aa.low is None or aa.high is None or _gate_holds(aa):
        return 1.0
    return max(aa.high, 1 / aa.low) if aa.low > 0 else math.inf


def _gate_holds(aa: Interval) -> bool:
    return aa.contains(1.0) and aa.above(1 - AA_WIDTH) and aa.below(1 + AA_WIDTH)


def _aa(f: StudyFacts) -> Iterator[Doubt]:
    again = "run the study on a quieter machine or with more blocks"
    if f.only_loads:
        return
    if f.aa is None or not f.aa.bounded:
        yield Doubt(
            Kind.AA_MISSING,
            "one substrate under two labels was not compared with itself often enough to know the noise",
            "use a preset with the A/A pair and at least 6 blocks",
        )
        return
    spread = f"[{f.aa.low:.3f}, {f.aa.high:.3f}]"
    if not f.aa.contains(1.0):
        yield Doubt(
            Kind.AA_FAILED,
            f"one substrate under two labels differs from itself: ratio {f.aa.estimate:.3f} {spread}",
            f"claim no difference smaller than that; {again}",
        )
    elif not _gate_holds(f.aa):
        yield Doubt(
            Kind.AA_WIDE,
            f"one substrate under two labels is equal to itself only within {spread}, wider than ±{AA_WIDTH:.0%}",
            f"claim no difference smaller than that; {again}",
        )


def _few(f: StudyFacts) -> Iterator[Doubt]:
    few = [c for c in f.cells if c.trials < FEW_FOR_P95]
    if few:
        least = min(c.trials for c in few)
        yield Doubt(
            Kind.FEW_TRIALS,
            f"{len(few)} of {len(f.cells)} cells have too few trials for an interval of p95 (the fewest: {least})",
            f"read no p95 from them; from {FEW_FOR_P95} trials on it has an upper bound, p99 from 368",
        )


def _baseline(f: StudyFacts) -> Iterator[Doubt]:
    if not f.baseline:
        yield Doubt(
            Kind.NO_BASELINE,
            "there is no bare process to compare with, so work and tax are not told apart",
            "add the substrate `local` as `bare` to the study",
        )
    borrowed = sum(c.borrowed for c in f.cells)
    if borrowed:
        yield Doubt(
            Kind.BORROWED_BASELINE,
            f"for {borrowed} trials the work was taken from other blocks, as theirs has no bare trial",
            "finish the study (run it again with the same --out), or leave these blocks out",
        )
    if not f.same_programs:
        yield Doubt(
            Kind.OTHER_PROGRAMS,
            "the baseline ran another interpreter or other tools than the sandboxes",
            "use an image made of the host's own programs, or give the baseline the image's interpreter",
        )


def _clipped(f: StudyFacts) -> Iterator[Doubt]:
    for c in f.cells:
        if c.clipped:
            yield Doubt(
                Kind.CLIPPED,
                f"{c.name}: {c.clipped} of {c.trials * c.actions} inside times exceeded their action by up to 50 µs",
                "harmless while rare; if it is common, the clock inside and the harness's run differently",
            )


def _cpu(f: StudyFacts) -> Iterator[Doubt]:
    if f.cpu_overdrawn:
        yield Doubt(
            Kind.CPU_CONSERVATION,
            f"{f.cpu_overdrawn} trials used more CPU seconds than all cores together had in that time",
            "a clock or the accounting of this host is wrong: trust no time of these trials",
        )


def _overhead(f: StudyFacts) -> Iterator[Doubt]:
    for c in f.cells:
        if c.gap_share is not None and c.gap_share > OVERHEAD:
            yield Doubt(
                Kind.OVERHEAD,
                f"{c.name}: the harness itself took {c.gap_share:.1%} of the trial",
                "use longer workloads for conclusions, and read times net of the null substrate's",
            )


def _order(f: StudyFacts) -> Iterator[Doubt]:
    for c in f.cells:
        if c.first_over_rest is not None and c.first_over_rest > FIRST:
            yield Doubt(
                Kind.FIRST_TRIAL,
                f"{c.name}: the first trial took {c.first_over_rest:.1f} times the median of the others",
                "a cold cache; use more warm-up trials, or study it as a factor: --cache cold-page",
            )
        if c.drift is not None and (c.drift.above(1 + DRIFT) or c.drift.below(1 - DRIFT)):
            yield Doubt(
                Kind.DRIFT,
                f"{c.name}: the second half of the trials took {c.drift.estimate:.2f} times the first",
                "look for what fills up or warms up; compare within blocks only",
            )


def _sessions(f: StudyFacts) -> Iterator[Doubt]:
    if f.sessions < 2:
        yield Doubt(
            Kind.SINGLE_SESSION,
            "all trials are of one session on one host",
            "claims are about this machine today; for claims about a substrate repeat on 3 days or hosts",
        )


def _emulated(f: StudyFacts) -> Iterator[Doubt]:
    for label in f.emulated:
        yield Doubt(
            Kind.EMULATED,
            f"{label} runs on emulated hardware",
            "its times say nothing about the real thing, so nothing is projected from its totals; run it where the "
            "processor can virtualise",
        )


def _failures(f: StudyFacts) -> Iterator[Doubt]:
    for c in f.cells:
        if c.failures:
            yield Doubt(
                Kind.FAILURES,
                f"{c.name}: {c.failures} of {c.trials} trials failed",
                "quantiles count them as infinitely slow, means and ratios leave them out; see the records",
            )


def _unpaired(f: StudyFacts) -> Iterator[Doubt]:
    for c in f.cells:
        if c.unpaired:
            yield Doubt(
                Kind.UNPAIRED,
                f"{c.name}: {c.unpaired} blocks lack the partner that its ratios are taken with",
                "finish the study (run it again with the same --out); these blocks are in no ratio",
            )


def _extrapolated(f: StudyFacts) -> Iterator[Doubt]:
    if f.extrapolated:
        lengths = ", ".join(map(str, f.extrapolated))
        yield Doubt(
            Kind.EXTRAPOLATED,
            f"trajectories of {lengths} actions were projected and not measured",
            "measure that length before you rely on it",
        )


def _late(f: StudyFacts) -> Iterator[Doubt]:
    for name, late_s in f.late:
        yield Doubt(
            Kind.LATE_GENERATOR,
            f"{name} is void: a sandbox was asked for {late_s * 1e3:.0f} ms after it was due",
            "a smaller load or a machine with more cores; the harness must not be what is measured",
        )


def _limits(f: StudyFacts) -> Iterator[Doubt]:
    for label, what in f.other_limits:
        yield Doubt(
            Kind.OTHER_LIMITS,
            f"sandboxes of {label} see {what}",
            "set that limit on this substrate, or compare it only with those that have the same",
        )


RULES: tuple[Rule, ...] = (
    _busy,
    _steal,
    _aa,
    _few,
    _baseline,
    _clipped,
    _cpu,
    _overhead,
    _order,
    _sessions,
    _emulated,
    _failures,
    _unpaired,
    _extrapolated,
    _late,
    _limits,
)
