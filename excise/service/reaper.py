"""Ends, pauses or stops sandboxes whose time is over."""

from __future__ import annotations

import asyncio

from excise.errors import ExciseError
from excise.service.cloud import Cloud
from excise.service.sandbox import NS, AtEnd, Ended, Sandbox, State

LOOKS_EVERY_S = 0.25
"""How late a deadline may be noticed."""

RETRY_S = 5.0


async def reap(cloud: Cloud) -> None:
    """Look after deadlines for ever."""
    ending: set[asyncio.Task[None]] = set()
    while True:
        await asyncio.sleep(LOOKS_EVERY_S)
        for sandbox in cloud.census.overdue(cloud.now_ns()):
            task = asyncio.create_task(_over(cloud, sandbox))
            ending.add(task)
            task.add_done_callback(ending.discard)


async def _over(cloud: Cloud, sandbox: Sandbox) -> None:
    """What its owner wanted to happen; if that fails, it is ended, and if that fails, it is tried again."""
    by_lease = sandbox.deadline_ns is None or sandbox.deadline_ns > cloud.now_ns()
    at_end = (sandbox.at_idle if by_lease else None) or sandbox.at_end
    try:
        if sandbox.state is State.RUNNING and at_end is AtEnd.PAUSE:
            await cloud.pause(sandbox)
        elif sandbox.state is State.RUNNING and at_end is AtEnd.STOP:
            await cloud.stop(sandbox)
        else:
            await cloud.destroy(sandbox, Ended.IDLE if by_lease else Ended.DEADLINE)
    except ExciseError:
        if sandbox.state is not State.ENDED:
            sandbox.at_end = AtEnd.DESTROY
            sandbox.deadline_ns = cloud.now_ns() + round(RETRY_S * NS)
            cloud.census.due(sandbox)
