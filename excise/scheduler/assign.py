"""Which idle worker has the least work left, for all that wait at once.

What a pair saves is the price of the stages they share. Taking the dearest shared stage first, and matching
there as many pairs as there are on both sides, saves the most that can be saved where every worker holds one
path: within the subtree of each stage no assignment has more pairs. Fairness decides how many each owner
gets, and whoever is late comes first; locality decides everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from excise.pools.stage import shared, work_left_s
from excise.scheduler.fairness import quotas
from excise.scheduler.idle import Idle, Worker
from excise.scheduler.waiting import LATE, ROOT, Waiting, Wanted


@dataclass(frozen=True, slots=True)
class Match:
    """Who got which worker, how many stages were there already, and what is left to do."""

    wanted: Wanted
    worker: Worker
    shared: int
    left_s: float
    late: bool = False

    def __str__(self) -> str:
        """The decision in one line, for whoever asks why."""
        turn = ", out of turn no longer" if self.late else ""
        return (
            f"{self.wanted.name} -> {self.worker.name}: {self.shared} of {len(self.wanted.path)} "
            f"stages there, {self.left_s:.3g} s left{turn}"
        )


def assign(
    waiting: Waiting,
    idle: Idle,
    *,
    running: Mapping[str, int] | None = None,
    weights: Mapping[str, float] | None = None,
    places: Mapping[str, int] | None = None,
    related: bool = False,
    limit: int = LATE,
) -> list[Match]:
    """Match as many as there are on both sides, and take them out of `waiting` and `idle`.

    `places` says how many each owner may get at most, where more than idle workers are to be shared.
    `related`: only those that share a stage are matched.
    """
    if not waiting or not idle:
        return []
    if places is None:
        places = quotas(waiting.counts(), running or {}, len(idle), weights)
    left = dict(places)
    matches = _the_late(waiting, idle, left, limit, related=related)
    for key in _by_savings(waiting, idle, related=related):
        while (worker := idle.holder(key)) is not None:
            wanted = waiting.first(key, lambda owner: left.get(owner, 0) > 0)
            if wanted is None:
                break
            left[wanted.owner] -= 1
            matches.append(_matched(waiting, idle, wanted, worker))
    return matches


def assignment(
    wanted: Iterable[Wanted],
    workers: Iterable[Worker],
    *,
    running: Mapping[str, int] | None = None,
    weights: Mapping[str, float] | None = None,
) -> list[Match]:
    """The same over plain lists, which it leaves as they are."""
    waiting, idle = Waiting(), Idle()
    for one in wanted:
        waiting.add(one)
    for worker in workers:
        idle.add(worker)
    return assign(waiting, idle, running=running, weights=weights)


def _the_late(
    waiting: Waiting, idle: Idle, left: dict[str, int], limit: int, *, related: bool
) -> list[Match]:
    matches: list[Match] = []
    for owner in tuple(left):
        while left[owner] > 0 and (wanted := waiting.late(owner, limit)) is not None:
            worker = idle.closest(wanted.path, related=related)
            if worker is None:
                break
            left[owner] -= 1
            matches.append(_matched(waiting, idle, wanted, worker, late=True))
    return matches


def _by_savings(waiting: Waiting, idle: Idle, *, related: bool) -> Sequence[str]:
    """The stages that the smaller side knows and somebody wants, the dearest first, and ROOT at the end."""
    depth: dict[str, int] = {}
    if len(idle) < len(waiting):
        for worker in idle:
            depth.update({key: i for i, key in enumerate(worker.keys, 1) if waiting.wants(key)})
    else:
        for wanted in waiting:
            depth.update({stage.key: i for i, stage in enumerate(wanted.path, 1)})
    dearest_first = sorted(depth, key=lambda k: (-waiting.saved_s(k), -depth[k], k))
    return dearest_first if related else [*dearest_first, ROOT]


def _matched(
    waiting: Waiting, idle: Idle, wanted: Wanted, worker: Worker, *, late: bool = False
) -> Match:
    waiting.remove(wanted.name)
    idle.remove(worker.name)
    held = frozenset(worker.keys)
    return Match(
        wanted, worker, shared(held, wanted.path), work_left_s(held, wanted.path), late=late
    )
