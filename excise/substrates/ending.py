"""How work that must not be left half done is ended although nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
    """Finish `work` though we are cancelled meanwhile, and be cancelled then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:  # noqa: BLE001  # raised again below
            break
    if cancelled is not None:
        raise cancelled
    return task.result()


async def settled(task: asyncio.Task[Any]) -> None:
    """Wait for its end; how it ended is somebody else's to tell."""
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
