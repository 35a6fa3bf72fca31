"""Compares what workloads gave on this host with the digests that a task's author published."""

from __future__ import annotations

from collections.abc import Mapping

from excise.measure.record import Noted
from excise.tasks.descriptor import Published
from excise.workloads.catalogue import task_of


def unlike_published(
    digests: Mapping[str, str], published: Mapping[str, Mapping[str, Published]]
) -> tuple[Noted, ...]:
    """A doubt for every workload whose digest is another; `published` is by task, then by key.

    A workload under a variant has a key of its own, so it is compared with none but its own digest.
    """
    noted = []
    for name, digest in digests.items():
        known = published_for(name, published)
        if known is not None and known.sha256 != digest:
            noted.append(
                Noted(
                    kind="golden",
                    text=f"{name} gives other observations here than its author published "
                    f"(with Python {known.python})",
                    advice="compare within this host only; another Python, git or coreutils "
                    "explains it, a changed file would not have passed the tree check",
                )
            )
    return tuple(noted)


def published_for(
    workload: str, published: Mapping[str, Mapping[str, Published]]
) -> Published | None:
    """What the author of the workload's task published for it, if anything."""
    task = task_of(workload)
    return None if task is None else published[task].get(key_of(workload))


def key_of(workload: str) -> str:
    """What a descriptor publishes it under: its name without the task, as `K10` of `K10:attrs-1417`."""
    base, *variants = workload.split("+")
    return "+".join((base.partition(":")[0], *variants))
