"""One action through a tool: its line, its answer, and what is made of a tool that takes too long."""

from __future__ import annotations

import asyncio

from excise.errors import DeadlineExceeded, Phase, SubstrateError
from excise.substrates.adapters.child import Child, ToolFailed, output_of
from excise.substrates.adapters.command import line_of
from excise.types import Action, Handle, Observation

GRACE_S = 10.0
"""So much longer than the action's own limit a tool may take; after that it is the tool that hangs."""

KILLED = 137


async def act(child: Child, name: str, box: Handle, action: Action, cwd: str) -> Observation:
    """The two streams come as one: tools do not tell them apart."""
    line = line_of(action, name)
    limit_s = None if action.timeout_s is None else action.timeout_s + GRACE_S
    try:
        async with asyncio.timeout(limit_s):
            said = await child.ask(
                "run", Phase.RUN, box=box, command=line, cwd=cwd, timeout=action.timeout_s
            )
    except TimeoutError as error:
        text = "the tool does not end a command whose time is over"
        raise DeadlineExceeded(text, substrate=name, phase=Phase.RUN) from error
    except ToolFailed as error:
        raise SubstrateError(str(error), substrate=name, phase=Phase.RUN) from error
    output = output_of(said)
    late = bool(said.get("timed_out"))
    return Observation(
        exit_code=KILLED if late else int(said["code"]),
        stdout=output,
        timed_out=late,
        stdout_bytes=len(output),
        stderr_bytes=0,
    )
