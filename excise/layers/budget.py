"""Which layers to let go of when there are too many: those that are cheapest to have again, per byte freed.

A layer is let go of together with all that stands on it, which is useless without it; so what counts is the
price of the whole branch: the seconds that its layers took to build, less the longer they have not been
asked for, over the bytes that it frees. No branch goes that holds a layer in use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from excise.errors import InputError

HALF_LIFE_S = 24 * 3600.0
"""A layer that was not asked for in this time is worth half as much as one asked for now."""

_LEAST_S = 0.01
"""No layer is free: even an empty one costs a lock, a rename and a manifest."""


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


def size_in_bytes(text: str) -> int:
    """`20GiB`, `500MB` or a number of bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is no size: write a number of bytes, or like 500MB or 20GiB")
    power = "KMGT".find(match[2].upper()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


@dataclass(frozen=True, slots=True)
class Held:
    """A layer as eviction sees it."""

    id: str
    parents: tuple[str, ...]
    bytes: int
    build_s: float
    used_at: float


def worth(layer: Held, now: float) -> float:
    """Seconds of building that are lost with the layer, discounted by how long nobody asked for it."""
    age_s = max(0.0, now - layer.used_at)
    return max(layer.build_s, _LEAST_S) * HALF_LIFE_S / (HALF_LIFE_S + age_s)


def evict(
    layers: Iterable[Held], in_use: Collection[str], budget_bytes: int, *, now: float
) -> tuple[str, ...]:
    """The layers to remove, in an order in which no layer goes before what stands on it.

    The order does not depend on the budget: a smaller budget removes these and then more.
    """
    kept = {layer.id: layer for layer in layers}
    branches = _branches(kept)
    free = {key for key, branch in branches.items() if branch.isdisjoint(in_use)}
    gone: list[str] = []
    total = sum(layer.bytes for layer in kept.values())
    while total > budget_bytes and free:
        cheapest = min(free, key=lambda key: (_price(branches[key], kept, now), key))
        branch = sorted(branches[cheapest], key=lambda key: (len(branches[key]), key))
        total -= sum(kept[key].bytes for key in branch)
        gone += branch
        free.difference_update(branch)
        for key in free:
            branches[key] -= branches[cheapest]
        for key in branch:
            del kept[key]
    return tuple(gone)


def _price(branch: Collection[str], kept: Mapping[str, Held], now: float) -> float:
    freed = sum(kept[key].bytes for key in branch)
    return sum(worth(kept[key], now) for key in branch) / max(freed, 1)


def _branches(kept: Mapping[str, Held]) -> dict[str, set[str]]:
    """Of each layer, itself and all that stands on it, directly or not."""
    branches = {key: {key} for key in kept}
    for key in kept:
        ahead = list(kept[key].parents)
        while ahead:
            below = ahead.pop()
            if below in branches and key not in branches[below]:
                branches[below].add(key)
                ahead += kept[below].parents
    return branches
