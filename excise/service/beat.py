"""An iterator with a heartbeat, for protocols that say now and then that nothing has happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def beating(source: AsyncIterator[T], every_s: float) -> AsyncGenerator[T | None, None]:
    """What `source` gives, and None whenever it gave nothing for that long. Leaving it leaves `source`, too."""
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            if coming is None:
                coming = asyncio.ensure_future(anext(source))
            done, _ = await asyncio.wait({coming}, timeout=every_s)
            if not done:
                yield None
                continue
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(BaseException):
                await coming
        aclose = getattr(source, "aclose", None)
        if aclose is not None:
            await aclose()
