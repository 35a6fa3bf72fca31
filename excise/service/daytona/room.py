"""What this door remembers of one sandbox besides what the cloud knows: its terms, and what it has going on inside.

It lives in the sandbox's notes and ends with it. A sandbox that another door made gets one with the usual terms.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from excise.service.daytona.terms import Terms
from excise.service.sandbox import Sandbox

if TYPE_CHECKING:
    from excise.service.daytona.interpreter import Context
    from excise.service.daytona.plain_sessions import PlainSession
    from excise.service.daytona.pty import Pty
    from excise.service.daytona.sessions import Session

NOTE = "daytona"
MOST_OPENINGS = 1000


@dataclass(eq=False, slots=True)
class Room:
    """Of one sandbox."""

    terms: Terms = field(default_factory=Terms)
    archived: bool = False
    env: dict[str, str] = field(default_factory=dict)
    """Variables set since it was made."""
    unset: set[str] = field(default_factory=set)
    sessions: dict[str, Session | PlainSession] = field(default_factory=dict)
    ptys: dict[str, Pty] = field(default_factory=dict)
    contexts: dict[str, Context] = field(default_factory=dict)
    openings: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By token: the port that it opens, and until when."""
    workdir: str | None = None
    """Where commands start, once it was asked."""
    signing_key: str = field(default_factory=lambda: secrets.token_hex(20))
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def user(self, box: Sandbox) -> str | None:
        """Whom its commands run as; None: as everything in it does."""
        return self.terms.user or box.user

    def go_on(self, work: Coroutine[object, object, None]) -> None:
        """Do it beside what is asked for."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def rested(self) -> None:
        """Its idle shells are ended and their state kept: whatever ends all processes does them no harm."""
        for session in list(self.sessions.values()):
            await session.rest()

    def emptied(self) -> None:
        """Nothing runs in the sandbox any more."""
        self.sessions.clear()
        self.ptys.clear()
        self.contexts.clear()

    def new_signing_key(self) -> str:
        """Addresses that were signed with the old one are worth nothing from now on."""
        self.signing_key = secrets.token_hex(20)
        return self.signing_key


def room_of(box: Sandbox) -> Room:
    """Its room, made if there is none."""
    found = box.notes.get(NOTE)
    if not isinstance(found, Room):
        found = box.notes[NOTE] = Room()
    return found
