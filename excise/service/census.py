"""Who is there, whose it is, when its time is over, and who lately went and why. In memory, and bounded."""

from __future__ import annotations

import asyncio
import heapq
import hmac
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from excise.errors import Phase, SandboxGone
from excise.service.errors import NAME, Conflict
from excise.service.sandbox import Sandbox, State

TOMBSTONES = 10_000
"""Ended sandboxes of which it is remembered why."""

DUES_OF_THE_DEAD = 100
"""So many may wait among those of the living before they are cleared out."""


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list. `next` is where the next part begins; None at the end."""

    items: tuple[Sandbox, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A sandbox that is no more."""

    id: str
    owner: str
    why: str
    ended_s: float


class Census:
    """All sandboxes by id; every question about one is asked on behalf of an owner."""

    def __init__(self) -> None:
        self._all: dict[str, Sandbox] = {}
        self._by_owner: dict[str, dict[str, Sandbox]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._gone: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._dues: list[tuple[int, int, Sandbox]] = []
        self._entered = 0
        self.empty = asyncio.Event()
        """Set while nobody is there."""
        self.empty.set()

    def __len__(self) -> int:
        return len(self._all)

    def of(self, owner: str) -> int:
        """How many are an owner's."""
        return len(self._by_owner.get(owner, ()))

    def living(self) -> list[Sandbox]:
        return list(self._all.values())

    def find(self, owner: str, id_: str) -> Sandbox:
        """The owner's sandbox of that id or name."""
        id_ = self._names.get((owner, id_), id_)
        sandbox = self._all.get(id_)
        if sandbox is not None and sandbox.owner == owner:
            return sandbox
        buried, why = self._gone.get(id_, ("", ""))
        if buried == owner:
            raise _gone(f"sandbox {id_} has ended: {why}")
        raise _gone(f"there is no sandbox {id_[:80]}")

    def watched(self, id_: str) -> Sandbox:
        """Anybody's, for whoever sees everybody's numbers."""
        sandbox = self._all.get(id_)
        if sandbox is None:
            raise _gone(f"there is no sandbox {id_[:80]}")
        return sandbox

    def by_token(self, id_: str | None, token: str) -> Sandbox:
        """The sandbox of that id, if the token is its own; without an id, the one whose token it is."""
        found = self._all.values() if id_ is None else filter(None, (self._all.get(id_),))
        shown = token.encode()
        for sandbox in found:
            if hmac.compare_digest(sandbox.token.encode(), shown):
                return sandbox
        raise _gone(f"there is no sandbox {(id_ or 'of that token')[:80]}")

    def page(
        self,
        owner: str,
        labels: Mapping[str, str],
        states: frozenset[State] | None,
        after: int,
        most: int,
    ) -> Page:
        """Those that have all these labels and one of these states, by number."""
        found: list[Sandbox] = []
        for sandbox in self._by_owner.get(owner, {}).values():
            if sandbox.number <= after or (states is not None and sandbox.state not in states):
                continue
            if any(sandbox.labels.get(name) != value for name, value in labels.items()):
                continue
            if len(found) == most:
                return Page(tuple(found), found[-1].number)
            found.append(sandbox)
        return Page(tuple(found), None)

    @contextmanager
    def named(self, owner: str, name: str | None) -> Iterator[None]:
        """Nobody else of that owner's is given that name while this one is made."""
        if name is None:
            yield
            return
        if (owner, name) in self._names:
            raise Conflict(f"there is a sandbox named {name} already")
        self._names[owner, name] = ""
        try:
            yield
        finally:
            if not self._names[owner, name]:
                del self._names[owner, name]

    def enter(self, sandbox: Sandbox) -> None:
        """It is there from now on."""
        self._entered += 1
        sandbox.number = self._entered
        self._all[sandbox.id] = sandbox
        self.empty.clear()
        self._by_owner.setdefault(sandbox.owner, {})[sandbox.id] = sandbox
        if sandbox.name:
            self._names[sandbox.owner, sandbox.name] = sandbox.id
        self.due(sandbox)

    def ended(self, sandbox: Sandbox, why: str, now_ns: int) -> None:
        """It is no more, and it is remembered why."""
        sandbox.state, sandbox.ended, sandbox.ended_ns = State.ENDED, why, now_ns
        self._all.pop(sandbox.id, None)
        if not self._all:
            self.empty.set()
        mine = self._by_owner.get(sandbox.owner, {})
        mine.pop(sandbox.id, None)
        if not mine:
            self._by_owner.pop(sandbox.owner, None)
        if sandbox.name and self._names.get((sandbox.owner, sandbox.name)) == sandbox.id:
            del self._names[sandbox.owner, sandbox.name]
        self.bury(sandbox.id, sandbox.owner, why)
        if len(self._dues) > 2 * len(self._all) + DUES_OF_THE_DEAD:
            self._dues = [(s.due_ns, s.number, s) for s in self.living() if s.due_ns is not None]
            heapq.heapify(self._dues)

    def bury(self, id_: str, owner: str, why: str) -> None:
        """Remember why it ended; the oldest is forgotten beyond a bound."""
        self._gone[id_] = (owner, why)
        while len(self._gone) > TOMBSTONES:
            self._gone.popitem(last=False)

    def due(self, sandbox: Sandbox) -> None:
        """Its time may be over at another moment than was known."""
        if sandbox.state is State.ENDED:
            return
        due_ns = sandbox.due_ns
        if due_ns is not None:
            heapq.heappush(self._dues, (due_ns, sandbox.number, sandbox))

    def overdue(self, now_ns: int) -> list[Sandbox]:
        """Those whose time is over. What was used or extended since it was noted is noted anew."""
        found: dict[str, Sandbox] = {}
        while self._dues and self._dues[0][0] <= now_ns:
            _, _, sandbox = heapq.heappop(self._dues)
            if sandbox.state is State.ENDED:
                continue
            due_ns = sandbox.due_ns
            if due_ns is not None and due_ns <= now_ns:
                found[sandbox.id] = sandbox
            else:
                self.due(sandbox)
        return list(found.values())

    def next_due_ns(self) -> int | None:
        """When to look again, at the latest."""
        return self._dues[0][0] if self._dues else None


def _gone(text: str) -> SandboxGone:
    return SandboxGone(text, substrate=NAME, phase=Phase.RUN)
