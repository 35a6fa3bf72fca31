"""All workloads by name: `T0`, `T0x300`, `T1:TASK`, `T2:TASK`, `K50:TASK`, and `+variant` after any of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from excise.errors import InputError
from excise.tasks.descriptor import Prepared
from excise.workloads import tiers
from excise.workloads.base import Listed
from excise.workloads.trajectory import trajectory
from excise.workloads.variants import VARIANTS, vary

KNOWN = "T0, T0x300, T1:TASK, T2:TASK, K<length>:TASK (such as K50:attrs-1417)"
_LENGTH = re.compile(r"K([0-9]{1,6})")


def workload(name: str, prepared: Mapping[str, Prepared]) -> Listed:
    """The workload of that name on the tasks that were prepared, or an InputError that lists what there is."""
    base, *variants = name.split("+")
    task = task_of(name)
    if task is not None and task not in prepared:
        ready = ", ".join(sorted(prepared)) or "none"
        raise InputError(f"workload {name}: task {task!r} is not prepared (prepared: {ready})")
    on = None if task is None else prepared[task]
    return vary(_base(base, on), variants, on)


def task_of(name: str) -> str | None:
    """The task that a workload's name asks for, if any; unknown names are told apart from known ones here."""
    tier, colon, task = name.partition("+")[0].partition(":")
    if tier in ("T0", "T0x300") and not colon:
        return None
    if (tier in ("T1", "T2") or _LENGTH.fullmatch(tier)) and task:
        return task
    raise InputError(f"unknown workload {name!r}; known: {KNOWN}, each with +{' +'.join(VARIANTS)}")


def _base(name: str, on: Prepared | None) -> Listed:
    tier = name.partition(":")[0]
    if on is None:
        return tiers.t0() if tier == "T0" else tiers.t0_floor()
    if tier == "T1":
        return tiers.t1(on)
    if tier == "T2":
        return tiers.t2(on)
    return trajectory(on, int(tier[1:]))
