"""What to do about the tax, in seconds and in money: break-even lengths, pools, resets, advice.

Prices come in as values (see `excise.tax.prices`); the advice comes out as values, each with the share
of bootstrap resamples in which it would have been given too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from excise.errors import InputError
from excise.tax.prices import Price

HOUR_S = 3600.0
RESAMPLES = 999
SEED = 20_260_701


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a sandbox, as it is billed."""

    vcpus: float = 2.0
    memory_gib: float = 4.0


def cost_usd(price: Price, shape: Shape, held_s: float, active_s: float | None = None) -> float:
    """One sandbox's price. `held_s` is create to destroy, `active_s` the part in which commands ran."""
    billed_s = max(held_s, price.minimum_s)
    busy_s = (
        min(active_s, billed_s) if price.billing == "active" and active_s is not None else billed_s
    )
    cpu = shape.vcpus * price.per_vcpu_hour * busy_s
    return (cpu + shape.memory_gib * price.per_gib_hour * billed_s) / HOUR_S


@dataclass(frozen=True, slots=True)
class Paid:
    """What one trial paid of the tax: once (start, set-up, cleanup) and per action, on average."""

    once_s: float
    per_action_s: float
    cleanup_s: float = 0.0
    """The part of `once_s` that comes after the last observation."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Below `actions` the quick starter wins, above it the quick actor; None: one of them always does."""

    actions: float | None
    short: str
    long: str


def break_even(a_name: str, a: Paid, b_name: str, b: Paid) -> BreakEven:
    """K* = (F_b - F_a) / (p_a - p_b), the length at which a and b pay the same tax."""
    quick, slow = ((a_name, a), (b_name, b))
    if (b.once_s, b.per_action_s) < (a.once_s, a.per_action_s):
        quick, slow = slow, quick
    saved_once = slow[1].once_s - quick[1].once_s
    lost_per_action = quick[1].per_action_s - slow[1].per_action_s
    if lost_per_action <= 0:
        return BreakEven(None, quick[0], quick[0])
    actions = saved_once / lost_per_action
    if math.isinf(actions):
        return BreakEven(None, quick[0], quick[0])
    return BreakEven(actions, quick[0], slow[0])


def pool_pays(
    *, rollouts_per_s: float, saved_s: float, usd_per_s: float, slots: float, idle_usd_per_s: float
) -> bool:
    """Whether a warm pool saves more than its idle slots cost: rate x (F_cold - F_warm) x price > P x idle."""
    return rollouts_per_s * saved_s * usd_per_s > slots * idle_usd_per_s


def reset_pays(*, reset_s: float, once_s: float, contamination_s: float = 0.0) -> bool:
    """Whether resetting beats making anew; `contamination_s` is the expected price of a dirty reset."""
    return reset_s + contamination_s < once_s


@dataclass(frozen=True, slots=True)
class Advice:
    """One sentence to act on, and how sure the data are: the share of resamples that say the same."""

    kind: str
    text: str
    sure: float


def advise(
    paid: Mapping[str, Sequence[Paid]], *, actions: int, seed: int = SEED
) -> tuple[Advice, ...]:
    """Which substrate to choose for trajectories of this length, where that flips, and what to move away."""
    if not paid or any(not trials for trials in paid.values()):
        raise InputError("advice needs at least one trial of every substrate")
    means = {name: _mean(trials) for name, trials in paid.items()}
    draws = _resampled(paid, seed)
    found = [_critical_path(name, means[name], actions, draws) for name in paid]
    if len(paid) > 1:
        best = _cheapest(means, actions)
        sure = fmean(_cheapest(d, actions) == best for d in draws)
        text = f"for trajectories of {actions} actions {best} pays the least tax"
        found = [Advice("choice", text, sure), *_flips(best, means, draws), *found]
    return tuple(a for a in found if a is not None)


def _flips(
    best: str, means: Mapping[str, Paid], draws: Sequence[Mapping[str, Paid]]
) -> list[Advice | None]:
    """The length at which each other substrate overtakes, or is overtaken by, the best one."""
    found: list[Advice | None] = []
    for other in means:
        point = break_even(best, means[best], other, means[other])
        if other == best or point.actions is None or point.actions < 1:
            continue
        again = [break_even(best, d[best], other, d[other]) for d in draws]
        sure = fmean(p.actions is not None and p.short == point.short for p in again)
        text = f"for K < {point.actions:.0f} actions {point.short} is cheaper than {point.long}"
        found.append(Advice("break_even", text, sure))
    return found


LARGE = 0.25


def _critical_path(
    name: str, mean: Paid, actions: int, draws: Sequence[Mapping[str, Paid]]
) -> Advice | None:
    """Cleanup that is a large part of the tax can be paid after the slot was given on."""

    def share(p: Paid) -> float:
        tax = p.once_s + actions * p.per_action_s
        return p.cleanup_s / tax if tax > 0 else 0.0

    if share(mean) < LARGE:
        return None
    text = f"cleanup is {share(mean):.0%} of the tax on {name}: destroy off the critical path"
    return Advice("cleanup", text, fmean(share(d[name]) >= LARGE for d in draws))


def _cheapest(means: Mapping[str, Paid], actions: int) -> str:
    return min(means, key=lambda name: means[name].once_s + actions * means[name].per_action_s)


def _mean(trials: Sequence[Paid]) -> Paid:
    return Paid(
        fmean(t.once_s for t in trials),
        fmean(t.per_action_s for t in trials),
        fmean(t.cleanup_s for t in trials),
    )


def _resampled(paid: Mapping[str, Sequence[Paid]], seed: int) -> list[dict[str, Paid]]:
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrets
    return [
        {name: _mean(rng.choices(trials, k=len(trials))) for name, trials in paid.items()}
        for _ in range(RESAMPLES)
    ]
