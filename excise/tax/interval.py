"""An estimate with what is known about its precision. Free of numpy, so that everybody can pass it around."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    `low` or `high` is None where the data give no such bound: an estimate without an upper bound is
    printed as "≥ low", never as a number. `n` counts the values behind it, `failures` those that had none.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int = 0
    failures: int = 0
    level: float = 0.95
    approximate: bool = False

    @property
    def bounded(self) -> bool:
        """Whether both bounds exist."""
        return self.low is not None and self.high is not None

    def contains(self, value: float) -> bool:
        """Whether the data are compatible with `value`; a bound that does not exist excludes nothing."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def above(self, value: float) -> bool:
        """Whether the whole interval lies above `value`."""
        return self.low is not None and self.low > value

    def below(self, value: float) -> bool:
        """Whether the whole interval lies below `value`."""
        return self.high is not None and self.high < value

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the estimate; infinite where a bound is missing."""
        if self.low is None or self.high is None or not math.isfinite(self.high):
            return math.inf
        return (self.high - self.low) / 2 / abs(self.estimate) if self.estimate else math.inf

    def scaled(self, factor: float) -> Interval:
        """The same in another unit, such as hours for N trajectories; `factor` is not negative."""
        return self.mapped(lambda x: x * factor)

    def widened(self, factor: float) -> Interval:
        """The same, but so much less certain: bounds of a positive figure moved apart by a factor of 1 or more."""
        low = None if self.low is None else self.low / factor
        return replace(self, low=low, high=None if self.high is None else self.high * factor)

    def mapped(self, rising: Callable[[float], float]) -> Interval:
        """Estimate and bounds through a function that never falls."""
        return replace(
            self,
            estimate=rising(self.estimate),
            low=None if self.low is None else rising(self.low),
            high=None if self.high is None else rising(self.high),
        )


def exactly(value: float) -> Interval:
    """A number that was given, not measured."""
    return Interval(value, value, value)
