"""What the agent cannot do, as callers of a substrate know it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from excise.errors import Phase, SubstrateError
from excise.jail.control import Gone
from excise.jail.phase import NAME, gone
from excise.substrates.inside import told as inside


def told(
    box: str, phase: Phase, end: Callable[[], Gone | None], *, destroyed: Callable[[], bool]
) -> AbstractContextManager[None]:
    """Raise what an error of the agent means for the jail `box`, of whose end `end` may know."""

    def lost() -> SubstrateError:
        if destroyed():
            return gone(f"{box} was destroyed", phase)
        return why_ended(box, phase, end())

    return inside.told(NAME, box, phase, lost)


def why_ended(box: str, phase: Phase, end: Gone | None) -> SubstrateError:
    """A jail has ended that nobody destroyed."""
    if end is not None and end.oom_kills:
        return gone(f"{box} ran out of memory and was ended as a whole", phase)
    return gone(f"{box} has ended", phase)
