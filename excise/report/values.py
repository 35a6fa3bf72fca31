"""What a report says, as plain values: every number of the tables, the figures and the page is one of these.

Times are seconds, never formatted here. None always means *not known*: a component that could not be
separated, a quantile without trials, a cell without a baseline. It never stands for zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from excise.report.pairs import Effect, Ratio, Repeated, Undisturbed
from excise.tax.interval import Interval
from excise.tax.stats import Ecdf

THINK_S = (0, 2, 4, 8)
"""The model's think time per action for which occupied-hours are given."""

PRICED_THINK_S = 4

BARE, TWIN = "bare", "bare-again"
"""The baseline, and the same under another label."""

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
"""Numbers of trajectories for which worker-hours are given."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Mean seconds of the components over the trials that are ok: means add up to the mean total."""

    queue: float
    create: float
    ready: float
    set_up: float
    acting: float
    gap: float
    cleanup: float
    total: float
    work: float | None = None
    slowdown: float | None = None
    dispatch: float | None = None

    def stack(self) -> dict[str, float]:
        """The addends as they are drawn: what cannot be separated stays in one piece."""
        head = {
            "queue": self.queue,
            "create": self.create,
            "ready": self.ready,
            "set_up": self.set_up,
        }
        return head | self.acts() | {"gap": self.gap, "cleanup": self.cleanup}

    def acts(self) -> dict[str, float]:
        """The actions' part of the stack; below-zero slowdown shortens the work it is measured against."""
        if self.work is None:
            if self.dispatch is None:
                return {"acting": self.acting}
            return {"acting": self.acting - self.dispatch, "dispatch": self.dispatch}
        if self.slowdown is None or self.dispatch is None:
            rest = self.acting - self.work
            return {"work": self.work + min(rest, 0.0), "unsplit": max(rest, 0.0)}
        return {
            "work": self.work + min(self.slowdown, 0.0),
            "slowdown": max(self.slowdown, 0.0),
            "dispatch": self.dispatch,
        }

    @property
    def fixed(self) -> float:
        """What does not grow with the number of actions."""
        return self.queue + self.create + self.ready + self.set_up + self.cleanup


@dataclass(frozen=True, slots=True)
class CellValues:
    """One substrate on one workload. `n` counts the trials, `failures` those of them that are not ok, by kind."""

    label: str
    substrate: str
    workload: str
    tier: str
    task: str | None
    variant: str
    actions: int
    n: int
    failures: dict[str, int]
    warm_ups: int
    tti_p50: Interval | None = None
    tti_p95: Interval | None = None
    episode_p50: Interval | None = None
    tti_p99: Interval | None = None
    episode_p95: Interval | None = None
    episode_p99: Interval | None = None
    total_p50: Interval | None = None
    total_p95: Interval | None = None
    total_mean: Interval | None = None
    amortised_p50: Interval | None = None
    dispatch_p50: Interval | None = None
    dispatch_per_action: Interval | None = None
    tax_per_action: Interval | None = None
    work_mean: Interval | None = None
    tax_mean: Interval | None = None
    tax_share: Interval | None = None
    cpu_p50: Interval | None = None
    parts: Parts | None = None
    episode_vs_bare: Interval | None = None
    tti_vs_bare: Interval | None = None
    curve: Ecdf | None = None
    """The distribution of tti, failures as never."""

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    @property
    def ok(self) -> int:
        return self.n - self.failed

    @property
    def success(self) -> float | None:
        return self.ok / self.n if self.n else None

    @property
    def main(self) -> bool:
        """Whether this is a plain workload, not a variant of one."""
        return not self.variant


@dataclass(frozen=True, slots=True)
class Fit:
    """F + K p of one substrate, fitted over its lengths; `direct_*` are read off the marks instead.

    `metric` is `episode` (without the clean-up) or `total`.
    """

    label: str
    metric: str
    lengths: tuple[int, ...]
    fixed: Interval
    per_action: Interval
    direct_fixed: float
    direct_per_action: float
    lack_of_fit: float


@dataclass(frozen=True, slots=True)
class Hours:
    """What one substrate costs per million trajectories of `actions` actions, in three kinds of worker-hours."""

    label: str
    workload: str
    actions: int
    n: int
    failed: int
    latency: Interval
    tax: Interval | None
    sandbox: Interval
    occupied: dict[str, Interval]
    """By think time in seconds per action."""
    usd: dict[str, Interval]
    """By provider of the price table, at the think time `PRICED_THINK_S`."""


@dataclass(frozen=True, slots=True)
class Projected:
    """Hours of a million trajectories of another length, from the longest that was measured."""

    label: str
    actions: int
    tax_hours: float | None
    sandbox_hours: float
    extrapolated: bool


@dataclass(frozen=True, slots=True)
class Advised:
    """What to do, and in which share of bootstrap resamples the data say the same."""

    kind: str
    text: str
    sure: float


@dataclass(frozen=True, slots=True)
class Doubted:
    kind: str
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """One claim of the paper and what this study says to it."""

    id: str
    words: str
    section: str
    verdict: str
    figures: tuple[tuple[str, Interval], ...]
    """What the verdict rests on, by name; arithmetic has one figure without a name."""
    unit: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """One trial that is not ok, as the page lists it."""

    cell: str
    block: int
    outcome: str
    phase: str
    action: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Load:
    """One substrate on one workload under one load shape. Times count from when each trial, or the first, was due."""

    label: str
    workload: str
    load: str
    n: int
    failures: dict[str, int]
    tti_p50: Interval | None
    tti_p95: Interval | None
    tti_p99: Interval | None
    service_p50: Interval | None
    """The same from when each was asked for: without what the generator was late."""
    first_s: float | None
    last_s: float | None
    """Until all of them were ready; None where one never was."""
    per_second: float
    """Trials that came through, over the time until the last had ended."""
    latest_s: float
    """The worst lateness of the generator itself."""
    memory_each_bytes: float | None
    """What was less available on the host at the worst moment, over the most sandboxes that were there at once."""
    void: bool
    """Whether the generator was too late for this run to say anything."""
    asked: tuple[float, ...]
    """When each was due, in order."""
    answered: tuple[float, ...]
    """When those that became ready did, in order."""

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a cell's substrate did per trial off the trial's clock, and what the trial found done, on average."""

    label: str
    workload: str
    load: str
    n: int
    spent_s: float
    idle_s: float
    saved_s: float


@dataclass(frozen=True, slots=True)
class Orchestrated:
    """When a cell's sandboxes answered, and how much later their platform called them ready: medians."""

    label: str
    workload: str
    n: int
    answered_s: float
    ready_seen_s: float
    late_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything a report says of one study."""

    id: str
    started: str
    preset: str
    version: str
    seed: int
    blocks: int
    host: dict[str, str | int | float | None]
    substrates: dict[str, dict[str, str]]
    skipped: dict[str, str]
    placement: str
    limits: dict[str, str | int | float | None]
    sessions: int
    labels: tuple[str, ...]
    task: str | None
    planned: int
    measured: int
    """Trials one at a time, warm-ups left out; those under load are counted apart."""
    loads_planned: int
    loads_measured: int
    warm_ups: int
    harness: dict[str, float | int] | None
    aa: Interval | None
    """One substrate under two labels, all workloads together: must contain 1."""
    cells: tuple[CellValues, ...]
    fits: tuple[Fit, ...]
    ratios: tuple[Ratio, ...]
    effects: tuple[Effect, ...]
    undisturbed: tuple[Undisturbed, ...]
    repeated: tuple[Repeated, ...]
    """Empty where all trials are of one session."""
    hours: tuple[Hours, ...]
    spreads: dict[str, float]
    """Slowest over fastest isolated substrate in mean hours, by kind: what think time makes of a ratio."""
    projected: tuple[Projected, ...]
    advice: tuple[Advised, ...]
    loads: tuple[Load, ...]
    doubts: tuple[Doubted, ...]
    claims: tuple[Claimed, ...]
    failures: tuple[Failed, ...]
    noise: dict[str, float | int | None]
    prices: str = ""
    readiness: tuple[Readiness, ...] = ()
    orchestration: tuple[Orchestrated, ...] = ()

    def cell(self, label: str, tier: str) -> CellValues | None:
        """The plain cell of a substrate in a tier (`T0`, `T1`, `T2`, `K150`), on the study's main task."""
        for c in self.cells:
            if c.label == label and c.tier == tier and c.main and c.task in (self.task, None):
                return c
        return None

    @property
    def compared(self) -> tuple[str, ...]:
        """All labels but the A/A twin, which is there to show the noise and nothing else."""
        return tuple(s for s in self.labels if s != TWIN)

    def fit(self, label: str, metric: str) -> Fit | None:
        return next((f for f in self.fits if f.label == label and f.metric == metric), None)

    def lengths(self) -> tuple[int, ...]:
        """The trajectory lengths K that were run, shortest first."""
        found = {c.actions for c in self.cells if c.tier.startswith("K") and c.main and c.n}
        return tuple(sorted(found))

    @property
    def longest(self) -> str | None:
        """The tier of the longest trajectory: what worker-hours are projected from."""
        return f"K{self.lengths()[-1]}" if self.lengths() else None

    @property
    def finished(self) -> bool:
        return self.measured >= self.planned and self.loads_measured >= self.loads_planned
