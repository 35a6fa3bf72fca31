"""Two studies side by side: which cells became slower or faster, as a ratio with its interval.

Their trials were not run in one block, so nothing pairs them directly. Two ratios are given: the plain one
of the medians, and the same relative to each study's own bare process in the same block, which takes out
what changed about the machine and not about the substrate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from excise.measure.plan import BARE, TWIN
from excise.measure.record import TrialRecord
from excise.measure.store import Study
from excise.tax.breakdown import Breakdown, break_down
from excise.tax.interval import Interval

Block = tuple[int, int]

METRICS: Mapping[str, Callable[[Breakdown], int]] = {
    "tti": lambda parts: parts.tti_ns,
    "episode": lambda parts: parts.episode_ns,
    "total": lambda parts: parts.total_ns,
}
TAX = "tax"
"""What a trial took beyond the bare process of its block."""


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of one cell: the second study over the first; None where there is too little."""

    cell: str
    metric: str
    plain: Interval | None
    to_bare: Interval | None
    failures: tuple[int, int]
    came_through: tuple[int, int]

    @property
    def verdict(self) -> str:
        """Judged by the ratio that the machine's own drift cannot move, where there is one."""
        ratio = self.to_bare or self.plain
        if ratio is None or not ratio.bounded:
            return "too few"
        if ratio.above(1):
            return "slower"
        return "faster" if ratio.below(1) else "no difference shown"

    def over(self, budget: float) -> bool:
        """Whether it has grown by more than this share of itself, with confidence; a cell that only fails now has."""
        before, after = self.came_through
        if before and not after:
            return True
        ratio = self.to_bare or self.plain
        return ratio is not None and ratio.bounded and ratio.above(1 + budget)

    @property
    def told(self) -> bool:
        """Whether there is enough of it to be held to anything."""
        ratio = self.to_bare or self.plain
        return ratio is not None and ratio.bounded


def diff(a: Study, b: Study) -> list[Change]:
    """The change of every cell that both studies have."""
    cells = [c for c in a.record.cells if c.name in {x.name for x in b.record.cells}]
    return [
        _change(a, b, cell.name, f"{BARE}/{cell.workload}", metric)
        for cell in cells
        if cell.load is None
        for metric in (*METRICS, TAX)
        if metric != TAX or cell.label not in (BARE, TWIN)
    ]


def _change(a: Study, b: Study, cell: str, bare: str, metric: str) -> Change:
    before, after = _taxes(a, cell, bare, metric), _taxes(b, cell, bare, metric)
    to_bare = None
    if cell != bare:
        of_bare = "total" if metric == TAX else metric
        one, other = (_over(v, _values(s, bare, of_bare)) for v, s in ((before, a), (after, b)))
        to_bare = _ratio(one, other)
    return Change(
        cell,
        metric,
        _ratio(list(before.values()), list(after.values())),
        to_bare,
        (_failures(a, cell), _failures(b, cell)),
        (_came_through(a, cell), _came_through(b, cell)),
    )


def _taxes(study: Study, cell: str, bare: str, metric: str) -> dict[Block, float]:
    """The metric's values; of the tax only those of blocks in which the bare process came through too."""
    if metric != TAX:
        return _values(study, cell, metric)
    least = _values(study, bare, "total")
    taken = _values(study, cell, "total")
    return {block: taken[block] - least[block] for block in taken if block in least}


def _values(study: Study, cell: str, metric: str) -> dict[Block, float]:
    return {
        (t.session, t.block): METRICS[metric](break_down(t.complete)) / 1e9
        for t in _of(study, cell)
        if t.outcome == "ok"
    }


def _of(study: Study, cell: str) -> list[TrialRecord]:
    return [t for t in study.measured if t.cell == cell]


def _failures(study: Study, cell: str) -> int:
    return sum(t.outcome != "ok" for t in _of(study, cell))


def _came_through(study: Study, cell: str) -> int:
    return sum(t.outcome == "ok" for t in _of(study, cell))


def _over(values: Mapping[Block, float], bare: Mapping[Block, float]) -> list[float]:
    return [v / bare[k] for k, v in values.items() if bare.get(k, 0) > 0]


def _ratio(before: list[float], after: list[float]) -> Interval | None:
    """Median over median, resampled independently: there are no pairs."""
    if not before or not after or min(*before, *after) <= 0:
        return None
    import numpy as np
    from scipy import stats

    from excise.tax.stats import RESAMPLES, SEED, Floats

    def log_ratio(x: Floats, y: Floats, axis: int = -1) -> Any:
        return np.log(np.median(x, axis=axis)) - np.log(np.median(y, axis=axis))

    centre = math.exp(log_ratio(np.array(after), np.array(before)))
    n = min(len(before), len(after))
    if n < 2:
        return Interval(centre, None, None, n=n)
    found = stats.bootstrap(
        (after, before),
        log_ratio,
        vectorized=True,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return Interval(centre, math.exp(found.low), math.exp(found.high), n=n)
