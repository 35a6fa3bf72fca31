"""Placement at a scale that no test machine has: the scheduler's own code in written-down time.

Workers hold the environments they ran last and serve one rollout at a time; a rollout pays for the stages its
worker lacks, then for its work. Every policy meets the same rollouts, works and losses, drawn before it runs.
Nothing here is measured: prices come in with the rollouts, and time is what they add up to.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from excise.pools.stage import Path, keys_of, work_left_s
from excise.scheduler.assign import assign
from excise.scheduler.idle import Idle, Worker
from excise.scheduler.waiting import Waiting, Wanted

ARRIVE, END, LOSE, MEND = range(4)


@dataclass(frozen=True, slots=True)
class Rollout:
    """When it comes, what it wants, and how long it works there."""

    name: str
    at_s: float
    path: Path
    work_s: float
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many workers, each keeping the last few environments; `losses` are (when, which, for how long)."""

    workers: int
    keeps: int = 1
    losses: tuple[tuple[float, int, float], ...] = ()


@dataclass(slots=True)
class Outcome:
    """What a policy made of it."""

    makespan_s: float = 0.0
    prepared_s: float = 0.0
    worked_s: float = 0.0
    waits_s: list[float] = field(default_factory=list)
    """From arrival to the first action, in the order of service: queueing and preparation."""
    places_late: int = 0
    """The most places that anybody was passed by, against plain order of arrival."""
    restarted: int = 0


class Policy(Protocol):
    """Decides who goes where. It is told of every change, and asked after each."""

    def came(self, rollout: Wanted) -> None: ...
    def free(self, worker: Worker) -> None: ...
    def lost(self, worker: str) -> None: ...
    def pairs(self) -> Sequence[tuple[str, str]]: ...


class LeastWorkLeft:
    """The scheduler that pools use: `assign`, over all that wait and all that idle."""

    def __init__(self) -> None:
        self._waiting, self._idle = Waiting(), Idle()

    def came(self, rollout: Wanted) -> None:
        self._waiting.add(rollout)

    def free(self, worker: Worker) -> None:
        self._idle.add(worker)

    def lost(self, worker: str) -> None:
        if worker in self._idle:
            self._idle.remove(worker)

    def pairs(self) -> Sequence[tuple[str, str]]:
        return [(m.wanted.name, m.worker.name) for m in assign(self._waiting, self._idle)]


class _Machine:
    """One worker: what it holds, the last few environments, and whether it is there at all."""

    __slots__ = ("epoch", "held", "keeps", "name", "up")

    def __init__(self, name: str, keeps: int) -> None:
        self.name, self.keeps = name, keeps
        self.held: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self.epoch, self.up = 0, True

    def keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for path in self.held.values() for key in path))

    def prepare(self, path: Path) -> float:
        """What is missing is built; the environment that was wanted longest ago makes room."""
        left_s = work_left_s(frozenset(self.keys()), path)
        self.held[path[-1].key] = keys_of(path)
        self.held.move_to_end(path[-1].key)
        while len(self.held) > self.keeps:
            self.held.popitem(last=False)
        return left_s


def simulate(rollouts: Sequence[Rollout], fleet: Fleet, policy: Policy) -> Outcome:
    """Run all of it to its end, event by event."""
    return _Run(rollouts, fleet, policy).outcome


class _Run:
    def __init__(self, rollouts: Sequence[Rollout], fleet: Fleet, policy: Policy) -> None:
        self.outcome = Outcome()
        self._policy = policy
        self._machines = {str(i): _Machine(str(i), fleet.keeps) for i in range(fleet.workers)}
        self._rollouts = {rollout.name: rollout for rollout in rollouts}
        self._number = {rollout.name: i for i, rollout in enumerate(rollouts)}
        self._running: dict[str, str] = {}
        self._served = 0
        self._events: list[tuple[float, int, int, str, float]] = []
        self._count = 0
        for rollout in rollouts:
            self._at(rollout.at_s, ARRIVE, rollout.name)
        for when_s, which, away_s in fleet.losses:
            self._at(when_s, LOSE, str(which), away_s)
        for machine in self._machines.values():
            policy.free(Worker(machine.name))
        self._go()

    def _at(self, when_s: float, kind: int, name: str, extra: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._events, (when_s, self._count, kind, name, extra))

    def _go(self) -> None:
        while self._events:
            now_s = self._events[0][0]
            while self._events and self._events[0][0] == now_s:
                _, _, kind, name, extra = heapq.heappop(self._events)
                self._happen(kind, name, extra, now_s)
            for rollout, worker in self._policy.pairs():
                self._start(self._rollouts[rollout], self._machines[worker], now_s)

    def _happen(self, kind: int, name: str, extra: float, now_s: float) -> None:
        if kind == ARRIVE:
            rollout = self._rollouts[name]
            self._policy.came(Wanted(name, rollout.path, rollout.owner))
            return
        machine = self._machines[name]
        if kind == END and machine.epoch == extra:
            self._end(machine, now_s)
        elif kind == LOSE and machine.up:
            self._lose(machine, now_s + extra)
        elif kind == MEND:
            machine.up = True
            self._policy.free(Worker(name))

    def _start(self, rollout: Rollout, machine: _Machine, now_s: float) -> None:
        left_s = machine.prepare(rollout.path)
        self.outcome.prepared_s += left_s
        self.outcome.waits_s.append(now_s + left_s - rollout.at_s)
        late = self._served - self._number[rollout.name]
        self.outcome.places_late = max(self.outcome.places_late, late)
        self._served += 1
        self._running[machine.name] = rollout.name
        self._at(now_s + left_s + rollout.work_s, END, machine.name, float(machine.epoch))

    def _end(self, machine: _Machine, now_s: float) -> None:
        rollout = self._rollouts[self._running.pop(machine.name)]
        self.outcome.worked_s += rollout.work_s
        self.outcome.makespan_s = max(self.outcome.makespan_s, now_s)
        self._policy.free(Worker(machine.name, machine.keys()))

    def _lose(self, machine: _Machine, back_s: float) -> None:
        """All it held is gone, and its rollout begins anew elsewhere."""
        machine.up, machine.epoch = False, machine.epoch + 1
        machine.held.clear()
        self._policy.lost(machine.name)
        rollout = self._running.pop(machine.name, None)
        if rollout is not None:
            self.outcome.restarted += 1
            self._policy.came(
                Wanted(rollout, self._rollouts[rollout].path, self._rollouts[rollout].owner)
            )
        self._at(back_s, MEND, machine.name)
