"""What only a pool asks of a substrate; asked for with `isinstance`, never required.

Without these a pool keeps whole environments and hands out exact ones. `Resettable`, `Forks` and `Proves`, of
the contract, it uses too. A driver implements these by shape alone and need not import this module.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from excise.pools.stage import Path
from excise.types import Handle, Spec


@runtime_checkable
class Staged(Protocol):
    """Builds environments stage by stage, so that a sandbox at one stage serves all that stands on it."""

    def stages(self, spec: Spec) -> Path:
        """The environment's path, each stage with its price as measured when it was last built here."""
        ...

    async def create_at(self, spec: Spec, depth: int) -> Handle:
        """A sandbox that holds the first `depth` stages of the spec's path."""
        ...

    async def advance(self, box: Handle, spec: Spec) -> None:
        """Give a pristine sandbox the spec's environment: what it shares stays, what is missing is added.

        What stood on the shared stages before is gone. A reset leads back to here from now on.
        """
        ...


@runtime_checkable
class Lays(Protocol):
    """Prepares an environment once for all its sandboxes, which are then made as quickly as forks would be.

    What a sandbox stands on is shared by all that stand there, and prices of stages that are there are 0.
    """

    async def lay(self, spec: Spec, depth: int) -> None:
        """Have the first `depth` stages here, without a sandbox on them."""
        ...


@runtime_checkable
class Binds(Protocol):
    """Sets what belongs to one rollout on a sandbox that is there already: env, user, labels, limits, egress."""

    def bind_now(self, box: Handle, spec: Spec) -> bool:
        """Do it, if that takes no waiting; else False, and nothing is changed."""
        ...

    async def bind(self, box: Handle, spec: Spec) -> None: ...
