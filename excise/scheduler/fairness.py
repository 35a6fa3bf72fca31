"""How many of the free workers each owner gets: max-min over what they hold already, by weight."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def quotas(
    waiting: Mapping[str, int],
    running: Mapping[str, int],
    free: int,
    weights: Mapping[str, float] | None = None,
) -> dict[str, int]:
    """Give `free` places one by one to the owner that has least for its weight and still waits.

    All places are given while anybody waits; ties go by name, so that the same question has one answer.
    """
    shares = weights or {}
    given = {owner: 0 for owner, count in waiting.items() if count > 0}
    if len(given) == 1:
        return {owner: min(free, waiting[owner]) for owner in given}
    heap = [(running.get(owner, 0) / shares.get(owner, 1.0), owner) for owner in given]
    heapq.heapify(heap)
    for _ in range(free):
        if not heap:
            break
        _, owner = heapq.heappop(heap)
        given[owner] += 1
        if given[owner] < waiting[owner]:
            has = running.get(owner, 0) + given[owner]
            heapq.heappush(heap, (has / shares.get(owner, 1.0), owner))
    return given
