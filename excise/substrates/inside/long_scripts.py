"""Scripts that are longer than an argument may be: they lie in the sandbox for as long as their command runs."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import replace

from excise.agent.async_connection import AsyncConnection
from excise.agent.errors import AgentError
from excise.substrates.script import fits, spill
from excise.types import Action


async def lay(agent: AsyncConnection, action: Action) -> tuple[Action, str | None]:
    """The action as it can be started, and the file that holds its script; None: it can be started as it is."""
    if fits(action.argv):
        return action, None
    script = f"/tmp/.excise-{secrets.token_hex(8)}"  # noqa: S108  # in the sandbox
    spilled = spill(action.argv, script)
    if spilled is None:
        return action, None
    await agent.write(script, spilled.data, mode=0o644)
    return replace(action, argv=spilled.argv), script


async def lift(agent: AsyncConnection, script: str | None) -> None:
    """The command has ended. Whoever it ran as could not have removed the file."""
    if script is not None:
        with contextlib.suppress(AgentError):
            await agent.remove(script)
