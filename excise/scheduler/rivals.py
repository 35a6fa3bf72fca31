"""What others do, to compare with: queues in order of arrival, and workers that look into the queue.

A `Line` serves in order and only chooses the worker. A `Pull` is the stronger form of a keyed pool: when there
are more rollouts than workers, a worker that comes free looks for one that wants what it holds.
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence

from excise.pools.stage import Path
from excise.scheduler.idle import Worker
from excise.scheduler.simulate import LeastWorkLeft, Policy
from excise.scheduler.waiting import Wanted

Choose = Callable[[Path, "Line"], str]


class Line:
    """A queue in order of arrival; `choose` picks the worker for whoever is next. The rivals are such."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._waiting: OrderedDict[str, Wanted] = OrderedDict()
        self.idle: OrderedDict[str, Worker] = OrderedDict()
        self.holding: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)
        self.lowest: list[tuple[int, str]] = []
        self.listed: list[str] = []
        self._place: dict[str, int] = {}

    def came(self, rollout: Wanted) -> None:
        self._waiting[rollout.name] = rollout

    def free(self, worker: Worker) -> None:
        self.idle[worker.name] = worker
        self._place[worker.name] = len(self.listed)
        self.listed.append(worker.name)
        heapq.heappush(self.lowest, (int(worker.name), worker.name))
        for key in worker.keys:
            self.holding[key][worker.name] = None

    def lost(self, worker: str) -> None:
        if worker in self.idle:
            self._take(worker)

    def pairs(self) -> Sequence[tuple[str, str]]:
        made = []
        while self._waiting and self.idle:
            name, worker = self._next()
            del self._waiting[name]
            self._take(worker)
            made.append((name, worker))
        return made

    def _next(self) -> tuple[str, str]:
        name, rollout = next(iter(self._waiting.items()))
        return name, self._choose(rollout.path, self)

    def _take(self, name: str) -> None:
        worker = self.idle.pop(name)
        place, last = self._place.pop(name), self.listed.pop()
        if last != name:
            self.listed[place] = last
            self._place[last] = place
        for key in worker.keys:
            del self.holding[key][name]


def round_robin(_: Path, line: Line) -> str:
    """Whoever has been idle longest, whatever it holds."""
    return next(iter(line.idle))


def pack_first(_: Path, line: Line) -> str:
    """The first worker in the list that is free: few workers are kept busy, and their caches turn over."""
    while line.lowest[0][1] not in line.idle:
        heapq.heappop(line.lowest)
    return line.lowest[0][1]


def at_random(seed: int) -> Choose:
    """Any idle worker."""
    drawn = random.Random(f"placement/{seed}")  # noqa: S311 - a simulation, not a secret
    return lambda _, line: drawn.choice(line.listed)


def exact_key(path: Path, line: Line) -> str:
    """One that holds the whole environment, else whoever has been idle longest."""
    return next(iter(line.holding[path[-1].key]), None) or round_robin(path, line)


def image_only(path: Path, line: Line) -> str:
    """One that holds the image, whatever else; else whoever has been idle longest."""
    return next(iter(line.holding[path[0].key]), None) or round_robin(path, line)


class Pull(Line):
    """Keyed by one stage: the worker chooses among those that wait, in their order, nobody's turn protected."""

    def __init__(self, choose: Choose, stage: int) -> None:
        super().__init__(choose)
        self._stage = stage
        self._wanting: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)

    def came(self, rollout: Wanted) -> None:
        super().came(rollout)
        self._wanting[rollout.path[self._stage].key][rollout.name] = None

    def _next(self) -> tuple[str, str]:
        if len(self._waiting) <= len(self.idle):
            name, worker = super()._next()
        else:
            worker = next(iter(self.idle))
            keys = reversed(self.idle[worker].keys)
            name = next((n for key in keys for n in self._wanting.get(key, ())), None) or next(
                iter(self._waiting)
            )
        del self._wanting[self._waiting[name].path[self._stage].key][name]
        return name, worker


def policies(seed: int = 0) -> dict[str, Callable[[], Policy]]:
    """Ours first, then what others do."""
    return {
        "least work left": LeastWorkLeft,
        "round robin": lambda: Line(round_robin),
        "random": lambda: Line(at_random(seed)),
        "pack first": lambda: Line(pack_first),
        "exact key": lambda: Line(exact_key),
        "image only": lambda: Line(image_only),
        "exact key, pulled": lambda: Pull(exact_key, -1),
        "image only, pulled": lambda: Pull(image_only, 0),
    }
