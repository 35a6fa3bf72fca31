"""Rollouts that belong together: what a batch waits for its slowest, and what is lost when one of them fails. Pure."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

MOST_GROUPS = 10_000
LABEL = "group"
"""The label of a sandbox that says which group of rollouts it is of."""


@dataclass(slots=True)
class _Group:
    alive: int = 0
    ends_ns: list[int] = field(default_factory=list)
    spent_ns: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a group, once none of it is alive any more."""

    rollouts: int
    straggler_ns: int
    """Summed over the others: how long each had ended when the last one did."""
    lost_ns: int
    """Everything the group had spent, if one of it failed for the infrastructure's sake."""


class Groups:
    """Bounded: the group that is forgotten when there are too many is the oldest."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, str], _Group] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, owner: str, group: str) -> None:
        """One more of it is alive."""
        self._of(owner, group).alive += 1

    def lose(self, owner: str, group: str) -> None:
        """One of it never came to be: whatever the others spend, until none is alive any more, is lost."""
        self._of(owner, group).failed = True

    def end(
        self, owner: str, group: str, ended_ns: int, spent_ns: int, *, failed: bool
    ) -> Settled | None:
        """One of it has ended; what came of the group, if it was the last."""
        found = self._open.get((owner, group))
        if found is None:
            return None
        found.alive -= 1
        found.ends_ns.append(ended_ns)
        found.spent_ns += spent_ns
        found.failed = found.failed or failed
        if found.alive > 0:
            return None
        del self._open[owner, group]
        last = max(found.ends_ns)
        straggler = sum(last - each for each in found.ends_ns)
        lost = found.spent_ns if found.failed else 0
        return Settled(len(found.ends_ns), straggler, lost)

    def _of(self, owner: str, group: str) -> _Group:
        found = self._open.setdefault((owner, group), _Group())
        while len(self._open) > MOST_GROUPS:
            self._open.popitem(last=False)
        return found
