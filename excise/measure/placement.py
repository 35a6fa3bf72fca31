"""Which cores the harness and the sandboxes use, so that they do not disturb each other."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """None: not bound, because there is one core only or somebody else has decided."""

    harness: tuple[int, ...] | None
    sandboxes: tuple[int, ...] | None

    def __str__(self) -> str:
        if self.harness is None or self.sandboxes is None:
            return "harness and sandboxes share one core"
        ours, theirs = _named(self.harness), _named(self.sandboxes)
        shared = " (shared with the harness)" if set(self.harness) & set(self.sandboxes) else ""
        return f"harness and git server on core {ours}, sandboxes on core {theirs}{shared}; daemons not bound"


def cores() -> set[int]:
    """The cores that this process may use."""
    return os.sched_getaffinity(0)


def place(cores: Collection[int], *, spread: bool = False, wanted: int = 1) -> Placement:
    """The harness on the first core, sandboxes on the next `wanted`; on all the others if `spread` (load tests).

    Where that is more than there are, sandboxes have the harness's core too.
    """
    ordered = sorted(cores)
    if len(ordered) < 2:
        return Placement(None, None)
    sandboxes = ordered[1:] if spread else ordered[1 : 1 + wanted]
    if len(sandboxes) < wanted:
        sandboxes = ordered[:wanted]
    return Placement((ordered[0],), tuple(sandboxes))


def bind(placement: Placement) -> None:
    """Bind this process, and what it starts, to the harness's cores."""
    if placement.harness is not None:
        os.sched_setaffinity(0, placement.harness)


def _named(cores: tuple[int, ...]) -> str:
    return ", ".join(map(str, cores))
