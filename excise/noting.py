"""Moments that only a driver sees, noted on the stopwatch of whoever holds one: a driver has none of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Note = Callable[[str], None]

_HELD: ContextVar[Note | None] = ContextVar("excise_note", default=None)

ANSWERED = "answered"
"""The first command was answered, although the platform may not call the sandbox ready yet."""
READY_SEEN = "ready_seen"
"""The platform called the sandbox ready."""


def note(moment: str) -> None:
    """Say that this moment is now. Nothing comes of it where nobody holds a stopwatch."""
    held = _HELD.get()
    if held is not None:
        held(moment)


def hold(noted: Note | None) -> None:
    """Hear what is noted in this task, and in those that it starts, from now on."""
    _HELD.set(noted)
