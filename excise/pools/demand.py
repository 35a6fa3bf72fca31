"""What is asked for, how often and in what bursts, forgotten with a half-life; and what is announced.

The rate is a decayed count. The peak is the stock that would have covered the worst burst so far if copies
were made one after the other: a trainer that asks for 64 at once every ten minutes has a tiny rate and a
peak of 64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from excise.errors import InputError
from excise.pools.stage import Path

NEGLIGIBLE = 0.05
"""A decayed count and a peak below this are forgotten, so that keys do not gather."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The demand for one environment: arrivals per second, the worst burst, and copies that were announced."""

    path: Path
    per_s: float
    peak: float = 0.0
    expected: int = 0
    pinned: int = 0
    turn: int = 0
    """Of those that were announced: which comes how soon, 0 next."""

    @property
    def key(self) -> str:
        return self.path[-1].key


@dataclass(slots=True)
class _Seen:
    path: Path
    at_s: float
    count: float = 0.0
    peak: float = 0.0
    backlog: float = 0.0
    expected: int = 0
    turn: int = 0
    until_s: float = 0.0
    pinned: int = 0


class Demand:
    """Fed with arrivals and announcements; time is passed in and never looked up."""

    def __init__(self, half_life_s: float = 60.0, peak_half_life_s: float = 900.0) -> None:
        if half_life_s <= 0 or peak_half_life_s <= 0:
            raise InputError("a half-life is a positive number of seconds")
        self._tau_s = half_life_s / math.log(2)
        self._peak_tau_s = peak_half_life_s / math.log(2)
        self._seen: dict[str, _Seen] = {}

    def arrived(self, path: Path, now_s: float, refill_s: float = 1.0) -> None:
        """A rollout asked for that environment; a copy of it takes `refill_s` to make."""
        seen = self._at(path, now_s)
        elapsed_s = max(0.0, now_s - seen.at_s)
        self._decay(seen, now_s)
        done = elapsed_s / refill_s if refill_s > 0 else math.inf
        seen.backlog = max(0.0, seen.backlog - done) + 1.0
        seen.count += 1.0
        seen.peak = max(seen.peak, seen.backlog)
        seen.expected = max(0, seen.expected - 1)

    def expect(
        self, path: Path, copies: int, now_s: float, within_s: float, *, turn: int = 0
    ) -> None:
        """So many rollouts of that environment will come soon: a trainer knows its next step."""
        if copies < 0 or within_s < 0:
            raise InputError(f"cannot expect {copies} rollouts within {within_s} s")
        seen = self._at(path, now_s)
        seen.expected, seen.turn, seen.until_s = copies, turn, now_s + within_s

    def reprice(self, path: Path) -> None:
        """What it costs is another than when it was last asked for; that is no demand for it."""
        seen = self._seen.get(path[-1].key)
        if seen is not None:
            seen.path = path

    def pin(self, path: Path, copies: int, now_s: float) -> None:
        """Keep that many whatever the demand; 0 takes the pin back."""
        if copies < 0:
            raise InputError(f"cannot keep {copies} copies")
        self._at(path, now_s).pinned = copies

    def wishes(self, now_s: float) -> tuple[Wish, ...]:
        """The demand as it stands, and what is negligible forgotten."""
        wishes = []
        for key, seen in list(self._seen.items()):
            self._decay(seen, now_s)
            if now_s >= seen.until_s:
                seen.expected = 0
            if not (seen.pinned or seen.expected) and max(seen.count, seen.peak) < NEGLIGIBLE:
                del self._seen[key]
                continue
            per_s = seen.count / self._tau_s
            wish = Wish(seen.path, per_s, seen.peak, seen.expected, seen.pinned, seen.turn)
            wishes.append(wish)
        return tuple(wishes)

    def _at(self, path: Path, now_s: float) -> _Seen:
        """Prices change; the latest path stands."""
        seen = self._seen.setdefault(path[-1].key, _Seen(path, now_s))
        seen.path = path
        return seen

    def _decay(self, seen: _Seen, now_s: float) -> None:
        elapsed_s = max(0.0, now_s - seen.at_s)
        seen.count *= math.exp(-elapsed_s / self._tau_s)
        seen.peak *= math.exp(-elapsed_s / self._peak_tau_s)
        seen.at_s = max(now_s, seen.at_s)
