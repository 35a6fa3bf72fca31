"""Whether a cell's sandbox can be made at all, found out by making one before the study begins.

A study of many substrates is not to be refused because one of them cannot have a workload, such as a guest
without a network and a task that is cloned: with leave, that cell is left out, and the study says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from excise.clock import Clock
from excise.errors import InputError, SubstrateError
from excise.measure.trial import END_WITHIN_S, Setting
from excise.session import Session
from excise.types import Action

PATIENCE_S = 300.0
_PROBE = Action(("true",))


async def tried(making: Awaitable[Setting], clock: Clock) -> Setting | str:
    """The setting, whose sandbox could be made; or in a line why it could not."""
    try:
        setting = await making
        async with asyncio.timeout(PATIENCE_S):
            session = Session(
                setting.substrate, setting.spec, clock=clock, end_within_s=END_WITHIN_S
            )
            async with session:
                await session.act(_PROBE)
    except (InputError, SubstrateError) as error:
        return str(error).partition("\n")[0]
    except TimeoutError:
        return f"its sandbox was not there after {PATIENCE_S:g} s"
    except Exception as error:  # noqa: BLE001  # whatever is wrong with it is its own, and told
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return setting
