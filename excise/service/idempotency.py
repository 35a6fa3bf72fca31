"""What is asked for twice under one key is done once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from excise.service.errors import Conflict

T = TypeVar("T")

KEPT = 10_000
LONGEST_KEY = 255


class Once(Generic[T]):
    """Remembers by key what was asked and what came of it; the oldest is forgotten beyond a bound."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._known: OrderedDict[Hashable, tuple[object, asyncio.Future[T]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    async def do(self, key: Hashable, asked: object, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` gives, or gave when it was first asked for under this key. A failure is not remembered.

        Whoever asks may stop waiting: the making goes on for the others, and for whoever asks again.
        """
        known = self._known.get(key)
        if known is None:
            future: asyncio.Future[T] = asyncio.ensure_future(make())
            self._known[key] = (asked, future)
            future.add_done_callback(lambda done: self._settled(key, done))
            return await asyncio.shield(future)
        before, made = known
        if before != asked:
            raise Conflict("that idempotency key was used for something else: take a new one")
        return await asyncio.shield(made)

    def _settled(self, key: Hashable, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._known.pop(key, None)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)
