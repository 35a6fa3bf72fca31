"""Who waits, in order, and findable by every stage of what they want.

Places are counted per owner: the n-th to ask would be served n-th if there were only a queue. Locality may
let others pass, but only twice as many as waited when one came (or `LATE`): then the first in line goes before
all others of its owner. So nobody starves, and how much locality may cost anybody is known when one comes.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from excise.pools.stage import Path

LATE = 64
"""How many places locality may cost even a rollout that found no queue."""

PASSED_BY = 2
"""For each that waited before one came, so many may pass. Less protects order and loses what it should save:
with 1 every second place of a long queue goes by order alone."""

ROOT = ""
"""Below every path: what is held and wanted by all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One rollout that waits for a worker with this environment."""

    name: str
    path: Path
    owner: str = ""


class Waiting:
    """The queue. Adding, removing and finding by stage cost as much as a path is deep.

    Buckets are OrderedDicts: finding the first of a plain dict walks over all that left before it.
    """

    def __init__(self) -> None:
        self._all: dict[str, Wanted] = {}
        self._owned: defaultdict[str, OrderedDict[str, tuple[int, int]]] = defaultdict(OrderedDict)
        self._by_key: defaultdict[str, defaultdict[str, OrderedDict[str, int]]]
        self._by_key = defaultdict(lambda: defaultdict(OrderedDict))
        self._saved_s: dict[str, float] = {ROOT: 0.0}
        self._came: defaultdict[str, int] = defaultdict(int)
        self._left: defaultdict[str, int] = defaultdict(int)
        self._asked = 0

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[Wanted]:
        return iter(self._all.values())

    def __getitem__(self, name: str) -> Wanted:
        return self._all[name]

    def add(self, wanted: Wanted, *, front: bool = False) -> None:
        """Join the end of the queue; or its front, where one goes back to whose worker turned out unfit."""
        self._asked += 1
        self._all[wanted.name] = wanted
        ahead = len(self._owned[wanted.owner])
        self._owned[wanted.owner][wanted.name] = (self._came[wanted.owner], ahead)
        self._came[wanted.owner] += 1
        saved = 0.0
        self._by_key[ROOT][wanted.owner][wanted.name] = self._asked
        for stage in wanted.path:
            saved += stage.price_s
            self._saved_s[stage.key] = saved
            self._by_key[stage.key][wanted.owner][wanted.name] = self._asked
        if front:
            self._to_front(wanted)

    def _to_front(self, wanted: Wanted) -> None:
        self._owned[wanted.owner].move_to_end(wanted.name, last=False)
        for key in (ROOT, *(stage.key for stage in wanted.path)):
            bucket = self._by_key[key][wanted.owner]
            bucket[wanted.name] = -self._asked
            bucket.move_to_end(wanted.name, last=False)

    def remove(self, name: str) -> Wanted:
        """Served or withdrawn: either way it is out of everybody's way."""
        wanted = self._all.pop(name)
        del self._owned[wanted.owner][name]
        self._left[wanted.owner] += 1
        self._drop(ROOT, wanted)
        for stage in wanted.path:
            if self._drop(stage.key, wanted):
                del self._saved_s[stage.key]
        return wanted

    def _drop(self, key: str, wanted: Wanted) -> bool:
        """Whether nobody wants that stage any more."""
        owners = self._by_key[key]
        del owners[wanted.owner][wanted.name]
        if not owners[wanted.owner]:
            del owners[wanted.owner]
        if not owners and key != ROOT:
            del self._by_key[key]
        return not owners and key != ROOT

    def counts(self) -> dict[str, int]:
        """How many of each owner wait."""
        return {owner: len(names) for owner, names in self._owned.items() if names}

    def wants(self, key: str) -> bool:
        """Whether anybody wants an environment with that stage."""
        return key in self._saved_s and bool(self._by_key[key])

    def saved_s(self, key: str) -> float:
        """What holding that stage saves whoever wants it."""
        return self._saved_s[key]

    def first(self, key: str, may: Callable[[str], bool]) -> Wanted | None:
        """Who has waited longest for something with that stage, among the owners that `may` be served."""
        heads = [
            (names[head], head)
            for owner, names in self._by_key[key].items()
            if may(owner) and (head := next(iter(names), None)) is not None
        ]
        return self._all[min(heads)[1]] if heads else None

    def late(self, owner: str, limit: int = LATE) -> Wanted | None:
        """The owner's first in line, if so many passed it that its turn must come now."""
        head = next(iter(self._owned[owner].items()), None)
        if head is None:
            return None
        name, (number, ahead) = head
        return (
            self._all[name] if self._left[owner] - number >= max(limit, PASSED_BY * ahead) else None
        )
