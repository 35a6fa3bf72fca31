"""Whether jails can be made on this host: the only proof is one that answers."""

from __future__ import annotations

from pathlib import Path

from excise.errors import ExciseError, SubstrateError
from excise.jail.substrate import Jail
from excise.substrates.base import Availability
from excise.types import Spec


async def availability_of(store: Path | None) -> Availability:
    """Makes a jail on the host's own programs and has it answer; nothing is left of it."""
    jail = Jail(store)
    try:
        box = await jail.create(Spec())
        await jail.ready(box)
        facts = await jail.describe()
    except SubstrateError as error:
        why, _, remedy = error.message.partition("; ")
        return Availability(False, why, remedy or None)
    except ExciseError as error:
        return Availability(False, str(error))
    finally:
        await jail.close()
    return Availability(True, f"made one: {facts['limits']}, {facts['ids']}")
