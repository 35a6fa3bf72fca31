"""The idle workers, findable by every stage they hold, the one idle longest first."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from excise.pools.stage import Path
from excise.scheduler.waiting import ROOT


@dataclass(frozen=True, slots=True)
class Worker:
    """Something that can take one rollout, and the stages it holds. A sandbox holds one path, a host many."""

    name: str
    keys: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """The last stage it holds: that of a sandbox tells its whole path."""
        return self.keys[-1] if self.keys else ROOT


class Idle:
    """Adding, removing and finding by stage cost as much as a worker holds."""

    def __init__(self) -> None:
        self._all: dict[str, Worker] = {}
        self._at: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)
        self._beyond: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._all.values())

    def __getitem__(self, name: str) -> Worker:
        return self._all[name]

    def add(self, worker: Worker) -> None:
        """It is idle from now on."""
        self._all[worker.name] = worker
        self._at[worker.at][worker.name] = None
        for key in (ROOT, *worker.keys):
            if key != worker.at:
                self._beyond[key][worker.name] = None

    def remove(self, name: str) -> Worker:
        """It was given work, or is no more."""
        worker = self._all.pop(name)
        _drop(self._at, worker.at, name)
        for key in (ROOT, *worker.keys):
            if key != worker.at:
                _drop(self._beyond, key, name)
        return worker

    def holder(self, key: str) -> Worker | None:
        """One that holds that stage: rather one that ends there than one prepared for something more."""
        for index in (self._at, self._beyond):
            name = next(iter(index.get(key, ())), None)
            if name is not None:
                return self._all[name]
        return None

    def closest(self, want: Path, *, related: bool = False) -> Worker | None:
        """The one with the least work left; None if there is none, or none that shares a stage."""
        for stage in reversed(want):
            found = self.holder(stage.key)
            if found is not None:
                return found
        return None if related else self.holder(ROOT)


def _drop(index: dict[str, OrderedDict[str, None]], key: str, name: str) -> None:
    """Empty buckets go with their last worker: keys come and go for as long as the service runs."""
    del index[key][name]
    if not index[key]:
        del index[key]
