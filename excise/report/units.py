"""Numbers as text. Values are plain seconds, hours and shares everywhere else; only here they get digits and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from excise.tax.interval import Interval

UNKNOWN = "not known"
NONE = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"

Scale = tuple[float, str]


def seconds_scale(value_s: float) -> Scale:
    """The unit in which a time reads best, as a factor and its name."""
    if value_s != 0 and abs(value_s) < 1e-3:
        return 1e6, "µs"
    if abs(value_s) < 1:
        return 1e3, "ms"
    return 1.0, "s"


def plain(value: float) -> str:
    """Three significant digits, grouped thousands, no exponent."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if math.isnan(value):
        return NONE
    magnitude = abs(value)
    if magnitude >= 99.95 or value == 0:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    if magnitude >= 0.0995:
        return f"{value:.2f}"
    return f"{value:.2g}" if magnitude >= 1e-4 else f"{value:.0e}"


def seconds(value_s: float | None) -> str:
    if value_s is None:
        return UNKNOWN
    if math.isinf(value_s):
        return "never"
    if value_s == 0:
        return "0"
    factor, unit = seconds_scale(value_s)
    return f"{plain(value_s * factor)} {unit}"


def hours(value_h: float | None) -> str:
    return UNKNOWN if value_h is None else f"{plain(value_h)} h"


def dollars(value: float | None) -> str:
    return UNKNOWN if value is None else f"{plain(value)} USD"


def share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{plain(100 * value)} %"


def ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{plain(value)}{TIMES}"


def _scaled(interval: Interval, factor: float, unit: str) -> str:
    """`value [low, high] unit`, a bound alone as a bound, no interval where none exists."""
    gap = "" if unit == TIMES else " "
    low, high = _bound(interval.low), _bound(interval.high)
    if math.isinf(interval.estimate):
        known = low is not None and math.isfinite(low)
        return f"≥ {plain((low or 0.0) * factor)}{gap}{unit}" if known else "never"
    point = plain(interval.estimate * factor)
    if low is None and high is None:
        return f"{point}{gap}{unit}"
    if high is None:
        return f"≥ {plain((low or 0.0) * factor)}{gap}{unit}"
    if low is None:
        return f"≤ {plain(high * factor)}{gap}{unit}"
    return f"{point} [{plain(low * factor)}, {plain(high * factor)}]{gap}{unit}"


def _bound(value: float | None) -> float | None:
    """A bound that could not be computed is none."""
    return None if value is None or math.isnan(value) else value


def _of(interval: Interval) -> float:
    """The number that decides the unit: the estimate, or a bound where the estimate is infinite."""
    if math.isfinite(interval.estimate):
        return interval.estimate
    return interval.low or 0.0


def seconds_interval(interval: Interval | None) -> str:
    return NONE if interval is None else _scaled(interval, *seconds_scale(_of(interval)))


def hours_interval(interval: Interval | None) -> str:
    return NONE if interval is None else _scaled(interval, 1.0, "h")


def share_interval(interval: Interval | None) -> str:
    return NONE if interval is None else _scaled(interval, 100.0, "%")


def ratio_interval(interval: Interval | None) -> str:
    return NONE if interval is None else _scaled(interval, 1.0, TIMES)


def dollars_interval(interval: Interval | None) -> str:
    return NONE if interval is None else _scaled(interval, 1.0, "USD")


def p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(number: float) -> str:
    """10,000 trajectories as `10k`, a million as `1M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{plain(number / size) if number % size else f'{number / size:.0f}'}{letter}"
    return f"{number:.0f}"


def tally(n: int, failed: int) -> str:
    """What stands beside every mark and every figure of a table."""
    return f"n={n}" if not failed else f"n={n}, {failed} failed"


def failures(outcomes: Mapping[str, int]) -> str:
    """How many trials failed in which way, one kind per line."""
    plural = {"mismatch": "mismatches", "conservation": "conservation"}
    return "\n".join(
        f"{n} {(kind if n == 1 else plural.get(kind, f'{kind}s')).replace('_', ' ')}"
        for kind, n in outcomes.items()
    )


Format = Callable[[Interval | None], str]
