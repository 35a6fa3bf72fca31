"""Single containers on a Docker Engine, or on what speaks its API: the paper's first archetype.

A sandbox is a fresh container that sleeps; an action is the engine's own exec: created, started with a
multiplexed stream, inspected for its exit code. Nothing is kept warm and nothing is placed inside.

Covered: limits of cpu, memory without swap, processes and cpus; network or none; everything an action has
started is dead after a time-out or a cancellation (see `killing` for what escapes); kills for lack of
memory are told; containers of killed owners are swept, others never touched.
Not covered: a disk limit, unless the engine's storage driver has quotas (`describe` says it); durations
inside the container, because nothing in there measures. A container shares the host's kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from excise.substrates.base import Availability
from excise.substrates.container.config import Options
from excise.types import Isolation

if TYPE_CHECKING:
    from excise.substrates.container.substrate import Container

__all__ = ["availability", "open_substrate"]


def open_substrate(**options: str) -> Container:
    """`engine=docker|podman`, `host=`, `network=`, `runtime=`, `pull=never|missing`, `init=engine|none`.

    `root=writable|read-only`; `agent=inside` for actions through an agent, which gets there by `place=auto|mount|copy`.
    """
    chosen = Options.of(options)
    if chosen.agent == "inside":
        from excise.substrates.container.inside import ContainerInside

        return ContainerInside(chosen)
    if chosen.isolation is not Isolation.CONTAINER:
        from excise.substrates.container.sealed import SealedContainer

        return SealedContainer(chosen)
    from excise.substrates.container.substrate import Container

    return Container(chosen)


async def availability(**options: str) -> Availability:
    """Whether an engine answers; if not, what is missing and what to do."""
    chosen = Options.of(options)
    from excise.substrates.container.available import engine_availability

    return await engine_availability(chosen)
