"""When an environment that could not be made is tried again: later and later, and never in a spin.

A failure that a retry may mend is retried after a pause that doubles, so many times; then, and at once for
any other failure, the stage is poisoned: everybody who waits for it is told why, nothing is made ahead there,
and whoever asks before the pause is over is told the same. Other stages notice nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from excise.errors import InputError


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how soon. `poison_s` is the first pause of a stage that was given up; it doubles too."""

    attempts: int = 3
    first_s: float = 0.1
    most_s: float = 10.0
    poison_s: float = 30.0
    most_poison_s: float = 1800.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError("at least one attempt is needed to make anything")
        if min(self.first_s, self.most_s, self.poison_s, self.most_poison_s) < 0:
            raise InputError("a pause between retries is never negative")


@dataclass(frozen=True, slots=True)
class Failing:
    """What is known of a stage that failed: since its last success."""

    error: BaseException
    failures: int = 0
    poisonings: int = 0
    not_before_s: float = 0.0
    poisoned: bool = False

    def barred(self, now_s: float) -> bool:
        """Whether nothing may be made there yet."""
        return now_s < self.not_before_s

    def refuses(self, now_s: float) -> bool:
        """Whether whoever asks is told of the last failure instead of waiting for another."""
        return self.poisoned and self.barred(now_s)


def failed(
    before: Failing | None,
    error: BaseException,
    *,
    key: str,
    retryable: bool,
    now_s: float,
    rules: Retries = Retries(),
) -> Failing:
    """One more failure: the next pause, or the end of patience."""
    last = before or Failing(error)
    failures = last.failures + 1
    if retryable and failures < rules.attempts:
        pause_s = _pause(rules.first_s, rules.most_s, failures, key)
        return replace(
            last, error=error, failures=failures, not_before_s=now_s + pause_s, poisoned=False
        )
    poisonings = last.poisonings + 1
    pause_s = _pause(rules.poison_s, rules.most_poison_s, poisonings, key)
    return Failing(error, 0, poisonings, now_s + pause_s, poisoned=True)


def _pause(first_s: float, most_s: float, nth: int, key: str) -> float:
    """Doubling, and spread over a quarter by the key, so that what failed together is not retried together."""
    spread = hashlib.sha256(f"{key}/{nth}".encode()).digest()[0] / 255
    return float(min(most_s, first_s * 2.0 ** min(nth - 1, 60))) * (0.75 + 0.25 * spread)
