"""What to make and what to let go, given what there is, what is worth keeping, and what may be used.

Copies under way count as being there, so nothing is made twice; those that leave count until they are gone,
so the budget holds at every moment. Repeated with the same wishes a plan comes to rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from excise.pools.size import Budget, Copy


@dataclass(frozen=True, slots=True)
class Idle:
    """A sandbox that waits for a rollout, and the stage it stands at."""

    name: str
    key: str
    since_s: float
    born_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stock:
    """All that counts against the budget."""

    idle: tuple[Idle, ...] = ()
    making: Mapping[str, int] = field(default_factory=dict)
    held: int = 0
    leaving: int = 0

    @property
    def total(self) -> int:
        return len(self.idle) + sum(self.making.values()) + self.held + self.leaving


@dataclass(frozen=True, slots=True)
class Ageing:
    """A copy more than is worth keeping may stay for `grace_s`; none stays longer than `oldest_s`."""

    grace_s: float = 30.0
    oldest_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Leave:
    """Which idle sandbox goes, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do next: make these, in this order, and let those go."""

    fill: tuple[Copy, ...] = ()
    leave: tuple[Leave, ...] = ()


def plan(
    stock: Stock,
    worthy: Sequence[Copy],
    budget: Budget,
    *,
    now_s: float,
    ageing: Ageing = Ageing(),
    room: int = 0,
    barred: Collection[str] = (),
) -> Plan:
    """`room` sandboxes are needed for rollouts that wait; `barred` stages fail and are not made ahead."""
    worthy = worthy[: max(0, budget.most - stock.held)]
    leave: dict[str, str] = {
        one.name: "too old" for one in stock.idle if now_s - one.born_s >= ageing.oldest_s
    }
    surplus = _surplus(stock, worthy, leave)
    leave |= {
        one.name: "not worth keeping any more"
        for one in surplus
        if now_s - one.since_s >= ageing.grace_s
    }
    missing = stock.total - stock.leaving - len(leave) + room - budget.most
    for one in [*surplus, *_least_worthy(stock, worthy)]:
        if missing <= 0:
            break
        if one.name not in leave:
            leave[one.name] = "its place is needed" if room else "over budget"
            missing -= 1
    fill = () if room else _missing(stock, worthy, leave, barred)
    free = max(0, budget.most - stock.total)
    short = sum(copy.named for copy in fill) - free - stock.leaving - len(leave)
    for one in surplus:
        if short > 0 and one.name not in leave:
            leave[one.name] = "its place is for what was announced"
            short -= 1
    return Plan(fill[:free], tuple(Leave(name, why) for name, why in leave.items()))


def _surplus(stock: Stock, worthy: Sequence[Copy], leave: Collection[str]) -> list[Idle]:
    """The idle ones that nothing wants kept, idle longest first."""
    wanted = Counter(copy.key for copy in worthy)
    surplus = []
    for one in sorted(stock.idle, key=lambda i: (-i.since_s, i.name)):
        if one.name in leave:
            continue
        wanted[one.key] -= 1
        if wanted[one.key] < 0:
            surplus.append(one)
    return surplus[::-1]


def _least_worthy(stock: Stock, worthy: Sequence[Copy]) -> list[Idle]:
    """The idle ones by the worth of their stage's last copy, least first."""
    rank: dict[str, int] = {copy.key: i for i, copy in enumerate(worthy)}
    return sorted(stock.idle, key=lambda i: (-rank.get(i.key, len(worthy)), i.since_s, i.name))


def _missing(
    stock: Stock, worthy: Sequence[Copy], leave: Collection[str], barred: Collection[str]
) -> tuple[Copy, ...]:
    """The worthy copies that neither are there nor under way."""
    there = Counter(one.key for one in stock.idle if one.name not in leave)
    there.update(stock.making)
    fill = []
    for copy in worthy:
        if copy.key in barred:
            continue
        there[copy.key] -= 1
        if there[copy.key] < 0:
            fill.append(copy)
    return tuple(fill)
