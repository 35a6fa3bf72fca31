"""How many copies to keep at which stage: the one that saves most comes next, until the budget ends.

A copy is worth what it saves whoever takes it, times the chance that somebody does before another could be
made. A copy of an exact environment serves that environment only; one further down serves all above it that
found no copy of their own, and saves them less. The order in which copies are worth keeping does not depend
on the budget: a larger budget keeps the same and more.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from excise.errors import InputError
from excise.pools.demand import Wish
from excise.pools.stage import Path, whole_price_s

MISS = 0.01
"""The chance of finding no copy that is accepted; copies that lower it further are not kept."""

PINNED_S, EXPECTED_S, TURN_S = 1e15, 1e12, 1e6
"""Worth of copies that somebody asked for by name: before all that is only likely to be needed, and in their turn."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What all sandboxes of a pool may use. `copy_bytes` is the memory of an idle one."""

    sandboxes: int
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    copy_bytes: int = 0

    def __post_init__(self) -> None:
        if self.sandboxes < 1:
            raise InputError(f"a pool of {self.sandboxes} sandboxes can serve nobody: at least 1")
        if self.memory_bytes is not None and self.memory_bytes < max(1, self.copy_bytes):
            raise InputError(
                f"memory_bytes={self.memory_bytes} is less than one sandbox takes ({self.copy_bytes})"
            )

    @property
    def most(self) -> int:
        """How many sandboxes fit into count and memory."""
        if self.memory_bytes is None or self.copy_bytes == 0:
            return self.sandboxes
        return min(self.sandboxes, self.memory_bytes // self.copy_bytes)


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy worth keeping: where, what it is worth, and why in words."""

    path: Path
    worth_s: float
    why: str

    @property
    def key(self) -> str:
        return self.path[-1].key

    @property
    def named(self) -> bool:
        """Whether somebody asked for it, and it is not only likely to be needed."""
        return self.worth_s >= EXPECTED_S / 2


@dataclass(slots=True)
class _Node:
    """One stage and its copies so far. The sums are carried along: a copy more costs one step per stage."""

    path: Path
    saved_s: float
    shared_s: float
    """What it saves whoever has to take it further."""
    exact: bool = False
    mean: float = 0.0
    """Of the arrivals in the time that one copy takes to make."""
    peak: float = 0.0
    expected: int = 0
    turn: int = 0
    pinned: int = 0
    copies: int = 0
    tail: float = 0.0
    """P(arrivals > copies), of an exact node."""
    served: float = 0.0
    inside: float = 0.0
    """The arrivals that found no copy of their own in what stands on this, on average."""
    below: list[_Node] = field(default_factory=list)

    def overflow(self) -> float:
        """The arrivals of one window that find no copy here, on average."""
        beyond = max(0.0, self.peak - max(self.copies, self.mean))
        return max(0.0, self.mean - self.served) + beyond

    def chances(self) -> tuple[float, float]:
        """Of the next copy being taken before another could be made: as it is, and to be taken further."""
        return max(self.tail, min(1.0, self.peak - self.copies)), self._fallen_through()

    def _fallen_through(self) -> float:
        return poisson_tail(self.inside, self.copies + 1)

    def keep(self) -> None:
        """One copy more: here, and so fewer arrivals that fall through to what is below."""
        before, caught = self.overflow(), self._fallen_through()
        self.served += self.tail
        self.copies += 1
        self.tail = max(0.0, self.tail - _poisson(self.mean, self.copies))
        fewer = before - self.overflow() + caught
        for node in self.below:
            node.inside = max(0.0, node.inside - fewer)

    def worth_s(self) -> float:
        """Seconds saved by one more copy, on average; nothing where a miss is rare enough."""
        if self.copies < self.pinned:
            return PINNED_S + self.saved_s
        if self.copies < self.expected:
            return EXPECTED_S - TURN_S * self.turn + self.saved_s
        exact, shared = self.chances()
        alone = exact * self.saved_s if exact > MISS else 0.0
        return max(alone, shared * self.shared_s if shared > MISS else 0.0)

    def why(self) -> str:
        if self.copies < self.pinned:
            return f"pinned, {self.copies + 1} of {self.pinned}"
        if self.copies < self.expected:
            return f"announced, {self.copies + 1} of {self.expected}"
        exact, shared = self.chances()
        if exact * self.saved_s >= shared * self.shared_s:
            return f"exact: taken with a chance of {exact:.2g}, saves {self.saved_s:.3g} s"
        return f"shared by what stands on it: taken with a chance of {shared:.2g}, saves {self.shared_s:.3g} s"


def copies(
    wishes: Sequence[Wish],
    budget: Budget,
    *,
    create_s: float,
    advance_s: float = 0.0,
    partial: bool = True,
) -> tuple[Copy, ...]:
    """The copies to keep, most worthy first. `partial`: a copy can be taken further up its tree.

    `create_s` and `advance_s` are what a new sandbox, and taking one further, cost besides the stages. The first
    copy that does not fit ends it, so that a larger budget never takes a copy away.
    """
    room, disk = budget.most, budget.disk_bytes
    kept: list[Copy] = []
    on_disk: dict[str, int] = {}
    for copy in _by_worth(_nodes(wishes, create_s, advance_s, partial=partial)):
        new = {s.key: s.size_bytes for s in copy.path if s.key not in on_disk}
        if len(kept) >= room or (
            disk is not None and sum(on_disk.values()) + sum(new.values()) > disk
        ):
            break
        on_disk.update(new)
        kept.append(copy)
    return tuple(kept)


def poisson_tail(mean: float, at_least: int) -> float:
    """P(N >= at_least) for a Poisson count."""
    nothing_below = max(0, math.floor(mean - 12 * math.sqrt(mean))) if mean > 0 else 0
    below = math.fsum(_poisson(mean, k) for k in range(nothing_below, at_least))
    return min(1.0, max(0.0, 1.0 - below))


def _poisson(mean: float, k: int) -> float:
    """P(N = k)."""
    if mean <= 0:
        return 1.0 if k == 0 else 0.0
    return math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def _nodes(
    wishes: Sequence[Wish], create_s: float, advance_s: float, *, partial: bool
) -> list[_Node]:
    nodes: dict[str, _Node] = {}

    def at(path: Path) -> _Node:
        saved_s = create_s + whole_price_s(path)
        shared_s = max(0.0, saved_s - advance_s)
        return nodes.setdefault(path[-1].key, _Node(path, saved_s, shared_s))

    for wish in wishes:
        node = at(wish.path)
        node.exact = True
        node.mean, node.peak = wish.per_s * node.saved_s, wish.peak
        node.expected, node.turn, node.pinned = wish.expected, wish.turn, wish.pinned
        node.tail = poisson_tail(node.mean, 1)
    for wish in wishes if partial else ():
        under = [at(wish.path[:depth]) for depth in range(1, len(wish.path))]
        for node in under:
            node.inside += nodes[wish.key].overflow()
        for depth, node in enumerate([*under, nodes[wish.key]]):
            node.below = under[:depth]
    return list(nodes.values())


def _by_worth(nodes: Sequence[_Node]) -> Iterator[Copy]:
    """Take the most worthy copy again and again. A worth only falls, so a stale one is looked at again."""
    heap = [(-node.worth_s(), node.path[-1].key, node) for node in nodes]
    heapq.heapify(heap)
    while heap:
        stale, key, node = heapq.heappop(heap)
        worth_s = node.worth_s()
        if worth_s <= 0:
            continue
        if -stale > worth_s:
            heapq.heappush(heap, (-worth_s, key, node))
            continue
        yield Copy(node.path, worth_s, node.why())
        node.keep()
        heapq.heappush(heap, (-node.worth_s(), key, node))
