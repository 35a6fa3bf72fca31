"""F1 to F7 of the method, each as a drawing or as a reason why this study has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib as mpl

from excise.report.figures import decomposition, growth, latency, load
from excise.report.figures.look import RC, Drawing, NotDrawn
from excise.report.values import Summary

Figure = Callable[[Summary], Drawing | NotDrawn]
FIGURES: tuple[Figure, ...] = (
    decomposition.breakdown,
    latency.tiers,
    latency.distributions,
    decomposition.composition,
    growth.lengths,
    growth.worker_hours,
)


def draw(
    summary: Summary, figures: Sequence[Figure] | None = None
) -> tuple[Drawing | NotDrawn, ...]:
    """All figures of a study, or some of them, in the order of the paper's; F7 where there was load."""
    if figures is None:
        figures = (*FIGURES, load.ramps) if summary.loads else FIGURES
    with mpl.rc_context(RC):
        return tuple(figure(summary) for figure in figures)
