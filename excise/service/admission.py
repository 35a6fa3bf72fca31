"""Whether one more sandbox fits: by count, memory, disk and load, for the whole host and for one owner. Pure.

Whoever does not fit is told at once, whose limit it was, and when to ask again. Nobody waits in here.
"""

from __future__ import annotations

from dataclasses import dataclass

from excise.errors import Phase
from excise.service.errors import Refused
from excise.service.policy import Policy
from excise.types import MIB

SOON_S, LATER_S = 1.0, 5.0


@dataclass(frozen=True, slots=True)
class Use:
    """What is used now. None: this host cannot tell."""

    sandboxes: int
    of_owner: int
    free_memory_bytes: int | None = None
    free_disk_bytes: int | None = None
    load_per_core: float | None = None


def refusal(policy: Policy, use: Use, copies: int = 1) -> Refused | None:
    """Why so many more sandboxes are refused now; None if they are not."""
    mine, all_ = policy.sandboxes_per_owner, policy.sandboxes
    if mine is not None and use.of_owner + copies > mine:
        return _no(f"you have {use.of_owner} sandboxes, of {mine} at most", SOON_S, theirs=True)
    if all_ is not None and use.sandboxes + copies > all_:
        return _no(f"the service holds {use.sandboxes} sandboxes, of {all_} at most", SOON_S)
    checks = (
        ("memory", use.free_memory_bytes, policy.free_memory_bytes),
        ("disk", use.free_disk_bytes, policy.free_disk_bytes),
    )
    for what, free, floor in checks:
        if free is not None and free < floor:
            left, kept = free // MIB, floor // MIB
            return _no(f"{left} MiB of {what} are left, and {kept} are kept free", LATER_S)
    load, most = use.load_per_core, policy.most_load_per_core
    if load is not None and most is not None and load > most:
        return _no(f"{load:.3g} processes wait for each core, of {most:g} at most", LATER_S)
    return None


def _no(text: str, wait_s: float, *, theirs: bool = False) -> Refused:
    return Refused(text, phase=Phase.CREATE, retry_after_s=wait_s, theirs=theirs)
