"""From seconds per trajectory to worker-hours (the paper's eq. 2), and what moves them.

    tax-hours(N)      = N * mean(Tax) / 3600
    sandbox-hours(N)  = N * mean(T) / 3600
    occupied-hours(N) = N * mean(T + think time) / 3600 / utilisation

T here is without model inference and reward. All three are linear in the mean number of actions, so a
distribution of lengths enters as its mean and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from excise.errors import InputError

HOUR_S = 3600.0
TRAJECTORIES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000)
ACTIONS = (25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300)
THINK_S = (0.0, 1.0, 2.0, 4.0, 8.0)
FAILURE_RATES = (0.0, 0.01, 0.02, 0.05)
REUSES = (1, 2, 5, 10, 50)


def worker_hours(trajectories: float, seconds: float) -> float:
    """Eq. (2): so many hours of one worker slot."""
    return trajectories * seconds / HOUR_S


@dataclass(frozen=True, slots=True)
class Rollout:
    """What one trajectory costs on one substrate, on average, without think time.

    `once_s` is paid per sandbox (queue, create, ready, cleanup) and shared by reuse, `set_up_s` per
    trajectory, `per_action_s` per action. The `tax_*` figures are the parts of the last two that a bare
    process would not have needed (all of `once_s` is tax); None where no baseline was measured.
    """

    name: str
    once_s: float
    per_action_s: float
    set_up_s: float = 0.0
    tax_set_up_s: float | None = None
    tax_per_action_s: float | None = None
    measured: tuple[int, ...] = ()
    """The lengths that were measured; others between them are interpolated, beyond them extrapolated."""

    def total_s(self, actions: float) -> float:
        return self.once_s + self.set_up_s + actions * self.per_action_s

    def tax_s(self, actions: float) -> float | None:
        if self.tax_per_action_s is None or self.tax_set_up_s is None:
            return None
        return self.once_s + self.tax_set_up_s + actions * self.tax_per_action_s

    def extrapolates(self, actions: float) -> bool:
        """Whether this length lies outside those that were measured."""
        return bool(self.measured) and not min(self.measured) <= actions <= max(self.measured)


def from_latency(name: str, total_s: float, actions: int = 150, once_s: float = 0.0) -> Rollout:
    """A rollout of which only the whole is known, and perhaps the part that is paid once."""
    _check(
        total_s > 0 and math.isfinite(total_s), f"{name}: a latency is above zero, not {total_s}"
    )
    _check(0 <= once_s < total_s, f"{name}: the part paid once lies between 0 and {total_s} s")
    _check(actions >= 1, f"a trajectory has at least one action, not {actions}")
    return Rollout(name, once_s, (total_s - once_s) / actions, measured=(actions,))


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many actions trajectories have: only the mean matters to hours."""

    mean: float
    text: str


def constant(actions: int) -> Lengths:
    _check(actions >= 1, f"a trajectory has at least one action, not {actions}")
    return Lengths(float(actions), f"{actions} actions")


def empirical(actions: Sequence[int]) -> Lengths:
    """The lengths of recorded trajectories."""
    _check(bool(actions) and min(actions) >= 1, "recorded lengths are at least one action each")
    return Lengths(sum(actions) / len(actions), f"{len(actions)} recorded lengths")


def lognormal(median: float, sigma: float, cap: int | None = None) -> Lengths:
    """Log-normal lengths, cut off at the cap that training sets: the mean of min(K, cap)."""
    _check(median > 0 and sigma >= 0, "a log-normal has a median above zero and a sigma from zero")
    whole = median * math.exp(sigma**2 / 2)
    text = f"log-normal, median {median:g}, sigma {sigma:g}"
    if cap is None:
        return Lengths(whole, text)
    if sigma == 0:
        return Lengths(min(median, cap), f"{text}, at most {cap}")
    z = (math.log(cap) - math.log(median)) / sigma
    return Lengths(whole * _phi(z - sigma) + cap * (1 - _phi(z)), f"{text}, at most {cap}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is trained: everything in a projection that is not measured."""

    trajectories: float = 1_000_000
    actions: float = 150
    think_s: float = 0.0
    """Model time per action, during which the sandbox is held."""
    failure_rate: float = 0.0
    """Share of attempts that hang until the time-out and are repeated."""
    timeout_s: float = 600.0
    reuse: int = 1
    """Rollouts per sandbox; above 1 each is followed by a reset."""
    reset_s: float = 0.0
    utilisation: float = 1.0
    """Share of the time that a slot is given to some trajectory."""

    def __post_init__(self) -> None:
        _check(0 < self.trajectories < math.inf, "the number of trajectories is above zero")
        _check(1 <= self.actions < math.inf, "a trajectory has at least one action")
        _check(0 <= self.failure_rate < 1, "a failure rate lies from 0 to below 1")
        _check(self.reuse >= 1, "a sandbox serves at least one rollout")
        _check(0 < self.utilisation <= 1, "utilisation lies above 0 and up to 1")
        for name in ("think_s", "timeout_s", "reset_s"):
            value: float = getattr(self, name)
            _check(value >= 0 and math.isfinite(value), f"{name} is not negative")


@dataclass(frozen=True, slots=True)
class Projection:
    """One substrate in one scenario. `tax_hours` is None where no baseline was measured."""

    name: str
    latency_s: float
    """Mean seconds per trajectory without think time, failures and reuse included."""
    tax_hours: float | None
    sandbox_hours: float
    occupied_hours: float
    extrapolated: bool


def project(rollout: Rollout, scenario: Scenario) -> Projection:
    """The three kinds of worker-hours."""
    repeats = scenario.failure_rate / (1 - scenario.failure_rate)
    lost_s = repeats * scenario.timeout_s
    saved_s = rollout.once_s - _once(rollout, scenario)
    seconds = rollout.total_s(scenario.actions) - saved_s + lost_s
    tax = rollout.tax_s(scenario.actions)
    occupied = (seconds + scenario.actions * scenario.think_s) / scenario.utilisation
    n = scenario.trajectories
    return Projection(
        name=rollout.name,
        latency_s=seconds,
        tax_hours=None if tax is None else worker_hours(n, tax - saved_s + lost_s),
        sandbox_hours=worker_hours(n, seconds),
        occupied_hours=worker_hours(n, occupied),
        extrapolated=rollout.extrapolates(scenario.actions),
    )


def _once(rollout: Rollout, scenario: Scenario) -> float:
    if scenario.reuse == 1:
        return rollout.once_s
    return rollout.once_s / scenario.reuse + scenario.reset_s


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two substrates in the same scenario: the paper's Table 2, with think time beside it."""

    slow: Projection
    fast: Projection

    @property
    def sandbox_hours(self) -> float:
        return self.slow.sandbox_hours - self.fast.sandbox_hours

    @property
    def ratio(self) -> float:
        return self.slow.sandbox_hours / self.fast.sandbox_hours

    @property
    def occupied_hours(self) -> float:
        return self.slow.occupied_hours - self.fast.occupied_hours

    @property
    def occupied_ratio(self) -> float:
        return self.slow.occupied_hours / self.fast.occupied_hours


def contrast(slow: Rollout, fast: Rollout, scenario: Scenario) -> Contrast:
    return Contrast(project(slow, scenario), project(fast, scenario))


def over(
    rollout: Rollout, scenario: Scenario, name: str, values: Iterable[float]
) -> list[Projection]:
    """The projection for each value of one field of the scenario, such as `actions` in ACTIONS."""
    changes: list[dict[str, Any]] = [{name: value} for value in values]
    return [project(rollout, replace(scenario, **change)) for change in changes]


STEP = 0.01
_OF_ROLLOUT = ("once_s", "set_up_s", "per_action_s")
_OF_SCENARIO = ("actions", "think_s", "failure_rate", "timeout_s", "reset_s")


def elasticities(rollout: Rollout, scenario: Scenario) -> dict[str, float]:
    """By how many per cent the occupied hours move for one per cent of each input: a tornado's bars.

    Largest first. What is zero in the scenario moves nothing, and the number of trajectories moves
    everything by exactly one, so it is left out.
    """

    def moved(name: str, factor: float) -> float:
        given: Any = scenario if name in _OF_SCENARIO else rollout
        changed = replace(given, **{name: getattr(given, name) * factor})
        pair = (rollout, changed) if given is scenario else (changed, scenario)
        return project(*pair).occupied_hours

    found = {
        name: math.log(moved(name, 1 + STEP) / moved(name, 1 - STEP))
        / math.log((1 + STEP) / (1 - STEP))
        for name in (*_OF_ROLLOUT, *_OF_SCENARIO)
        if name != "actions" or scenario.actions * (1 - STEP) >= 1
    }
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


@dataclass(frozen=True, slots=True)
class Marginal:
    """What a small delay comes to at scale. `actions` is None for a delay paid once per rollout."""

    delay_s: float
    actions: int | None
    trajectories: int
    hours: float


def marginal(delay_s: float, actions: int | None, trajectories: int) -> Marginal:
    times = 1 if actions is None else actions
    return Marginal(delay_s, actions, trajectories, worker_hours(trajectories, delay_s * times))


def paper_table_1() -> tuple[Marginal, ...]:
    """The paper's Table 1: 1 s per rollout, 10 and 100 ms per action, at a million of 150 steps."""
    rows = ((1.0, None), (0.01, 150), (0.1, 150))
    return tuple(marginal(delay, actions, 1_000_000) for delay, actions in rows)


def table_1(
    actions: Sequence[int] = (25, 64, 150),
    trajectories: Sequence[int] = (10_000, 100_000, 1_000_000, 10_000_000),
) -> tuple[Marginal, ...]:
    """The same for other lengths and scales, 1 ms per action included."""
    per_action = [(delay, k) for delay in (0.001, 0.01, 0.1) for k in actions]
    rows: list[tuple[float, int | None]] = [(1.0, None), *per_action]
    return tuple(marginal(delay, k, n) for delay, k in rows for n in trajectories)


def _phi(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InputError(otherwise)
