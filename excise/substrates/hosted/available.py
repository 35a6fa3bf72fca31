"""Whether a cloud can be used from here: an SDK, a key, and a control plane that takes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from excise.errors import ExciseError
from excise.substrates.base import Availability
from excise.substrates.remote import LOOPBACK

if TYPE_CHECKING:
    from excise.substrates.hosted.substrate import Hosted

PATIENCE_S = 15.0


async def look(name: str, key: str, opened: Callable[[], Hosted]) -> Availability:
    """Asks for the list of sandboxes, which costs nothing; makes none."""
    extra = f"pip install 'excise[{name}]'"
    if not os.environ.get(key):
        return Availability(False, f"no key: {key} is not set", f"export {key}=...")
    try:
        hosted = opened()
    except ImportError as error:
        return Availability(False, f"{name}'s SDK is not here: {error}", extra)
    except ExciseError as error:
        return Availability(False, str(error))
    try:
        async with asyncio.timeout(PATIENCE_S):
            await hosted.look()
    except TimeoutError:
        return Availability(False, f"{name} did not answer within {PATIENCE_S:g} s")
    except ExciseError as error:
        return Availability(False, str(error))
    finally:
        await hosted.close()
    facts = await hosted.describe()
    where = "a service on this machine" if LOOPBACK in facts["deployment"] else facts["api"]
    return Availability(True, f"{facts['sdk']} at {where}")
