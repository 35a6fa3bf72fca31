"""What a study will consist of: names resolved, substrates asked whether they work here, cells fixed.

Everything that can be refused is refused here, before anything is built or written.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from excise import __version__
from excise.errors import InputError
from excise.measure import page_cache, plan
from excise.measure.load import arrivals
from excise.measure.record import Cache, Cell, StudyRecord
from excise.substrates import registry
from excise.tasks import load
from excise.tasks.descriptor import Prepared, Task
from excise.types import GIB, Limits
from excise.workloads.catalogue import task_of, workload

BY_DEFAULT = ("jail", "docker")
"""Takes part, besides the bare process, where it is usable and nobody said otherwise."""
ROOTLESS = (
    "without root it holds no limits on CPU and memory and has no network for T2; "
    "to study it all the same: --substrate jail"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for; None and empty mean: the preset's."""

    substrates: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    preset: str | None = None
    seed: int | None = None
    blocks: int | None = None
    size: str | None = None
    """vCPUs and GiB of a sandbox, such as `2x4`; None: one and two."""
    caches: tuple[str, ...] = ()
    warm_ups: int | None = None
    fewer: tuple[str, ...] = ()
    """`SUBSTRATE=N`: substrates so slow that they take part in the first N blocks only."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A study as it will be: fixed before the first trial."""

    preset: plan.Preset
    cells: tuple[Cell, ...]
    seed: int
    tasks: Mapping[str, str] = field(default_factory=dict)
    """By task id: the name or the path of its descriptor."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


def sized(size: str | None) -> Limits:
    """The limits of a sandbox of that size: `1x2` and `2x4` are the two of the method."""
    if size is None:
        return Limits()
    cpus, _, gib = size.partition("x")
    try:
        limits = Limits(cpus=float(cpus), memory_bytes=round(float(gib) * GIB))
    except (ValueError, OverflowError):
        raise InputError(f"a size is vCPUs and GiB, such as 2x4, not {size!r}") from None
    if not 0.1 <= (limits.cpus or 0) <= (os.cpu_count() or 1):
        raise InputError(f"size {size}: this host has {os.cpu_count()} processors to give")
    if not 1 / 16 <= (limits.memory_bytes or 0) / GIB <= 1024:
        raise InputError(f"size {size}: between 0.0625 and 1024 GiB of memory")
    return limits


async def decide(asked: Asked) -> Planned:
    """Resolve names, ask which substrates work here, and fix the cells; changes nothing."""
    how = plan.preset(asked.preset or "smoke")
    if asked.blocks is not None:
        how = replace(how, blocks=asked.blocks)
    if asked.warm_ups is not None:
        how = plan.warmed(how, asked.warm_ups)
    tasks = {load.task(t).id: t for t in asked.tasks or (plan.TASK,)}
    for shape in asked.loads:
        arrivals(shape, 0)
    for name in asked.workloads:
        task = task_of(name)
        if task is not None:
            tasks.setdefault(task, load.task(task).id)
        workload(name, {} if task is None else {task: unprepared(load.task(tasks[task]))})
    caches = _caches(asked.caches)
    chosen, skipped = await _take_part(asked.substrates, root=os.geteuid() == 0)
    cells: tuple[Cell, ...] = ()
    if not asked.loads or asked.preset is not None:
        named = tuple(tasks) if asked.tasks or not asked.workloads else (plan.TASK,)
        cells = plan.cells(chosen, how, tasks=named, workloads=asked.workloads, caches=caches)
        cells = plan.fewer(cells, _fewer(asked.fewer, chosen), how.blocks)
    of_loads = plan.load_cells(chosen, asked.loads, asked.workloads or ("T0",))
    needed = {task_of(c.workload) for c in (*cells, *of_loads)}
    return Planned(
        how,
        (*cells, *of_loads),
        secrets.randbelow(2**31) if asked.seed is None else asked.seed,
        {task: name for task, name in tasks.items() if task in needed},
        skipped,
        sized(asked.size),
    )


def _fewer(said: Sequence[str], chosen: Sequence[plan.Chosen]) -> dict[str, int]:
    """By label: in how many blocks at most."""
    found = {}
    labels = {c.label for c in chosen}
    for each in said:
        label, _, count = each.rpartition("=")
        if not count.isdecimal() or not int(count):
            raise InputError(f"--fewer takes SUBSTRATE=N, such as vm=5, not {each!r}")
        if label not in labels:
            raise InputError(f"--fewer {each}: {label or each!r} does not take part in this study")
        found[label] = int(count)
    return found


def _caches(names: Sequence[str]) -> tuple[Cache, ...]:
    known: dict[str, Cache] = {name: name for name in get_args(Cache)}
    for name in names:
        if name not in known:
            raise InputError(f"no cache state {name!r}; there are {', '.join(known)}")
    if "cold-page" in names:
        page_cache.refuse_unless_droppable()
    return tuple(known[name] for name in names)


async def _take_part(
    specs: Sequence[str], *, root: bool
) -> tuple[list[plan.Chosen], dict[str, str]]:
    """The substrates that take part, and those that would have by default, with the reason they do not."""
    chosen, skipped = [], {}
    for spec in specs or BY_DEFAULT:
        name, options = registry.parse(spec)
        if name == "local" and not options:
            continue
        if name == "jail" and not specs and not root:
            skipped[spec] = ROOTLESS
            continue
        usable = await registry.availability(name, **options)
        if usable.usable:
            chosen.append(plan.Chosen(spec, name, options))
            continue
        if specs:
            raise InputError(f"{spec} cannot be used here: {usable}")
        skipped[spec] = str(usable)
    return chosen, skipped


def refuse_another(asked: Asked, planned: StudyRecord) -> None:
    """Resuming goes on with the plan as it is: refuse flags that say something else."""
    labels = {c.label for c in planned.cells} - {plan.BARE, plan.TWIN}
    wanted = set(asked.substrates) - {"local"}
    begun: list[tuple[str, object, object]] = [
        ("preset", asked.preset, planned.preset),
        ("seed", asked.seed, planned.seed),
        ("blocks", asked.blocks if planned.minutes is None else None, planned.blocks),
        ("substrates", wanted if asked.substrates else None, labels),
        ("workloads", set(asked.workloads) or None, {c.workload for c in planned.cells}),
        (
            "caches",
            {"warm", *asked.caches} if asked.caches else None,
            {c.cache for c in planned.cells},
        ),
        ("size", _limited(sized(asked.size)) if asked.size else None, _begun_with(planned)),
        ("loads", set(asked.loads) or None, {c.load for c in planned.cells if c.load}),
        ("version", __version__, planned.version),
    ]
    for what, now, then in begun:
        if now is not None and now != then:
            raise InputError(
                f"this study was begun with {what} {_listed(then)}, not {_listed(now)}: "
                f"leave that out to go on with it, or choose another --out"
            )


def _limited(limits: Limits) -> str:
    return f"{limits.cpus:g}x{(limits.memory_bytes or 0) / GIB:g}"


def begun_limits(planned: StudyRecord) -> Limits:
    """The limits that a study was begun with."""
    known: dict[str, Any] = {
        k: v for k, v in planned.limits.items() if k in Limits.__dataclass_fields__
    }
    return Limits(**known)


def _begun_with(planned: StudyRecord) -> str:
    return _limited(begun_limits(planned))


def _listed(value: object) -> str:
    return ", ".join(sorted(map(str, value))) if isinstance(value, set) else str(value)


def unprepared(task: Task) -> Prepared:
    """A task as data only, to see what a workload of it consists of: nothing of it is on this disk."""
    nowhere = Path("/nowhere")
    patch = b"nothing\n"
    return Prepared(task, "0" * 40, task.base.tree, nowhere, nowhere, nowhere, patch, patch)
