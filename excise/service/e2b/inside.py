"""What this door knows of one sandbox besides what the cloud does: its users as they were looked up, its watchers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from excise.service.doors import Desk
from excise.service.e2b.events import Wish
from excise.service.e2b.labels import FileLabels
from excise.service.e2b.reach import person_of
from excise.service.people import Person
from excise.service.processes import ENDED_KEPT, MOST_ALIVE, Process
from excise.service.sandbox import Sandbox

if TYPE_CHECKING:
    from excise.service.e2b.watching import Watcher

NOTE = "e2b"


@dataclass(slots=True)
class Inside:
    """Lives as long as its sandbox."""

    people: dict[str, Person] = field(default_factory=dict)
    watchers: dict[str, Watcher] = field(default_factory=dict)
    wishes: dict[int, Wish] = field(default_factory=dict)
    """What was asked for, by the numbers of processes: what runs may be something that comes to the same."""
    labels: FileLabels = field(default_factory=FileLabels)

    def wished(self, sandbox: Sandbox, process: Process, wish: Wish) -> None:
        """This is what was asked for; of processes that are forgotten, it is forgotten."""
        self.wishes[process.number] = wish
        if len(self.wishes) > MOST_ALIVE + ENDED_KEPT:
            there = {each.number for each in sandbox.processes.all() if each.running}
            self.wishes = {n: each for n, each in self.wishes.items() if n in there}

    async def person(self, desk: Desk, sandbox: Sandbox, name: str | None) -> Person:
        """The user of that name, or the sandbox's own. Looked up once: who is there stays who he is."""
        known = self.people.get(name or "")
        if known is None:
            known = await person_of(desk.cloud.files(sandbox), sandbox, name)
            self.people[name or ""] = known
        return known


def inside(sandbox: Sandbox) -> Inside:
    """What is known of it; the same as long as it lives."""
    known = sandbox.notes.get(NOTE)
    if not isinstance(known, Inside):
        known = sandbox.notes[NOTE] = Inside()
    return known
