"""How many blocks fit into so many minutes: fixed after the first block, by how long its trials took and by nothing else.

What came out of the trials is not looked at, so that n is as good as fixed before the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from excise.errors import InputError
from excise.measure.plan import Slot
from excise.measure.progress import Progress
from excise.measure.record import Cell, TrialRecord

MOST_MINUTES = 24 * 60.0


def checked(minutes: float | None) -> float | None:
    """A time that a study may be given."""
    if minutes is not None and not 0 < minutes <= MOST_MINUTES:
        raise InputError(f"{minutes:g} minutes: give more than 0 and at most {MOST_MINUTES:g}")
    return minutes


def first_block(slots: Sequence[Slot]) -> list[Slot]:
    """What is run before anything is decided: the first warm-ups, or the first block where there are none."""
    return [s for s in slots if s.block == slots[0].block]


def blocks_that_fit(
    cells: Sequence[Cell],
    took_s: Mapping[str, float],
    left_s: float,
    *,
    blocks: int,
    warm_ups: int,
) -> int:
    """The most blocks, up to those planned, that `left_s` is enough for; at least one."""
    usual_s = fmean(took_s.values()) if took_s else 0.0

    def seconds(count: int) -> float:
        return sum(
            took_s.get(c.name, usual_s)
            * (
                min(count, blocks if c.blocks is None else c.blocks)
                + (warm_ups if c.warm_ups is None else c.warm_ups)
            )
            for c in cells
            if c.load is None
        )

    low, high = 1, blocks
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if seconds(middle) <= left_s else (low, middle - 1)
    return low


class Timed:
    """Passes on what it is told, and keeps how long each cell's trials took, waiting for a quiet machine included."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self.took_s: dict[str, float] = {}

    def say(self, text: str) -> None:
        self._inner.say(text)

    def begin(self, slots: Sequence[Slot]) -> None:
        self._inner.begin(slots)

    def ended(self, record: TrialRecord, seconds: float) -> None:
        self.took_s[record.cell] = seconds
        self._inner.ended(record, seconds)

    def finish(self) -> None:
        self._inner.finish()
