"""How often somebody may ask: a bucket of tokens for each, which fills as time goes by. Pure but for what it keeps."""

from __future__ import annotations

from collections import OrderedDict

MOST_BUCKETS = 10_000


class Rate:
    """`per_s` on average, `burst` at once. None: as often as they like."""

    def __init__(self, per_s: float | None, burst: int) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, now_s: float, tokens: float = 1.0) -> float | None:
        """None if it may be done now; else how long until it may be. More than the burst may be done when it is full."""
        if self._per_s is None:
            return None
        left, since_s = self._buckets.pop(who, (self._burst, now_s))
        left = min(self._burst, left + max(0.0, now_s - since_s) * self._per_s)
        needed = min(tokens, self._burst)
        wait_s = None
        if left >= needed:
            left -= tokens
        else:
            wait_s = (needed - left) / self._per_s
        self._buckets[who] = (left, now_s)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait_s
