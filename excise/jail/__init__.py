"""The rollout-native substrate: a fresh, isolated, limited sandbox in about a millisecond, without a daemon.

Covered: name spaces of every kind, ids shifted away from the host's, overlays over read-only layers with a
writable part of bounded size, seccomp, landlock, limits by cgroups of either version, egress by list, and
every optional ability of the contract. Not covered: a kernel of its own; whoever needs a wall against the
kernel's own bugs takes a virtual machine. `docs/isolation.md` has the whole table.
"""

from __future__ import annotations

from pathlib import Path

from excise.errors import InputError
from excise.substrates.base import Availability


def open_substrate(*, store: str | None = None, warm: str = "no") -> object:
    """A `Jail`; `store` is the folder of its layers, `warm=yes` keeps the interpreters of all environments warm."""
    from excise.jail.substrate import Jail

    return Jail(Path(store) if store else None, warm=_yes(warm))


async def availability(*, store: str | None = None, warm: str = "no") -> Availability:
    """Whether jails can be made here, found out by making one."""
    from excise.jail.available import availability_of

    _yes(warm)
    return await availability_of(Path(store) if store else None)


def _yes(text: str) -> bool:
    if text not in {"yes", "no"}:
        raise InputError(f"warm={text}: yes or no")
    return text == "yes"
