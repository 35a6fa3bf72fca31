"""What the platform gives commands in a sandbox, asked of the agent that it started there."""

from __future__ import annotations

from collections.abc import Mapping

from excise.agent.async_connection import AsyncConnection
from excise.substrates.inside.habits import WORKSPACE, Habits

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for when nobody says it."""


async def habits_of(
    agent: AsyncConnection,
    *,
    env: Mapping[str, str],
    user: str | None = None,
    workspace: str = WORKSPACE,
    without: tuple[str, ...] = ("HOME",),
) -> Habits:
    """The agent's own environment is what the platform gives, and `env` comes on top.

    A platform sets HOME for the user that the agent is; `without` it each command gets its own user's. Say
    `without=()` where the image sets it. The workspace is made if it is missing.
    """
    await agent.hello()
    given = await agent.environment()
    kept = {name: value for name, value in given.items() if name not in without}
    await agent.mkdir(workspace, parents=True)
    return Habits.of({"PATH": PATH, **kept, **env}, user, workspace)
