"""What each level of isolation means, in the words that stand beside its figures: the one table of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from excise.types import Isolation


@dataclass(frozen=True, slots=True)
class Level:
    """What stands between the agent's code and the host, and what gets past it."""

    between: str
    past: str


LEVELS: Mapping[Isolation, Level] = {
    Isolation.NONE: Level(
        "nothing", "commands are the caller's own processes: they can do what the caller can"
    ),
    Isolation.NAMESPACES: Level(
        "name spaces: other processes, mounts and networks are out of sight",
        "the host's files may be read, and nothing limits what is used",
    ),
    Isolation.CONTAINER: Level(
        "name spaces, an own root, fewer capabilities, a system call filter, limits",
        "the kernel is the host's: one hole in it is enough",
    ),
    Isolation.USER_KERNEL: Level(
        "a second kernel, an ordinary process of the host, that answers the system calls",
        "what a hole in it leads to is a confined process, and from there the host's kernel",
    ),
    Isolation.VM: Level(
        "a machine of its own with a kernel of its own",
        "the hypervisor and the devices that it emulates",
    ),
}


def level_of(name: str) -> Isolation | None:
    """By the name that records carry; None for one that is not known here."""
    return next((level for level in LEVELS if word_for(level) == name), None)


def word_for(level: Isolation) -> str:
    """As records and tables have it."""
    return level.name.lower()
