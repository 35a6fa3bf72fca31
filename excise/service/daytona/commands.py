"""The commands of one session, and what they wrote: what every kind of session has. Bounded."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from excise.errors import ExciseError
from excise.service.daytona.errors import Told
from excise.service.tape import Tape
from excise.types import MIB

LOG_BYTES = 8 * MIB
"""Output kept of one command."""

LOGS_BYTES = 64 * MIB
"""Output kept of all commands of one session; the oldest lose theirs first."""

MOST_COMMANDS = 4096
"""Commands of one session that can be asked for; the oldest that ended are forgotten first."""

ENDED = -1
"""The exit code of a command whose shell ended before it could start."""


@dataclass(eq=False, slots=True)
class Command:
    """One command of a session."""

    text: str
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    tape: Tape = field(default_factory=lambda: Tape(LOG_BYTES))
    exit_code: int | None = None
    error: ExciseError | None = None
    """What broke it, if it was the infrastructure."""
    asked: int = 0
    """How often somebody asked how it stands while it ran."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, code: int, error: ExciseError | None = None) -> None:
        if self.exit_code is None:
            self.exit_code, self.error = code, error
            self.tape.close()
            self.over.set()


class Commands:
    """A session without its shell."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.commands: dict[str, Command] = {}
        self.closed = False
        self.broken: ExciseError | None = None
        """What broke the shell, if it was the infrastructure."""

    def must_be_open(self) -> None:
        """Told, or what broke it, where nothing more can be run."""
        if self.broken is not None:
            raise self.broken
        if self.closed:
            raise Told(410, "SESSION_ENDED", f"session {self.id} has ended")

    def keep(self, command: Command) -> None:
        self.commands[command.id] = command
        if len(self.commands) > MOST_COMMANDS:
            ended = (key for key, each in self.commands.items() if each.exit_code is not None)
            oldest = next(ended, None)
            if oldest is not None:
                del self.commands[oldest]
        total = sum(each.tape.kept_bytes for each in self.commands.values())
        for each in self.commands.values():
            if total <= LOGS_BYTES:
                break
            if each.exit_code is not None:
                total -= each.tape.kept_bytes
                each.tape.forget()
