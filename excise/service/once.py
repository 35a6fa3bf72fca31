"""A stream over a substrate that has none: the command runs as one action, and its output comes at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from typing import cast

from excise.service.errors import Unsupported
from excise.substrates.base import Stream, Streams, Substrate, Terminal
from excise.types import Action, Handle, Observation


@cache
def has_streams(kind: type) -> bool:
    """Asked for every command, and a protocol is slow to answer."""
    return issubclass(kind, Streams)


async def stream_of(
    substrate: Substrate,
    box: Handle,
    action: Action,
    terminal: Terminal | None,
    input_open: bool = True,
) -> Stream:
    """The substrate's own stream where it has them, and else one that is not much of a stream."""
    if has_streams(type(substrate)):
        streams = cast("Streams", substrate)
        return await streams.stream(box, action, terminal=terminal, input_open=input_open)
    if terminal is not None:
        raise Unsupported(f"{substrate.name} has no terminals; serve one that streams, as the jail")
    return Once(substrate, box, action)


class Once:
    """Takes no input but the action's own, and of signals only the one that ends it."""

    def __init__(self, substrate: Substrate, box: Handle, action: Action) -> None:
        self._name = substrate.name
        self._task = asyncio.ensure_future(substrate.run(box, action))
        self._killed = False

    async def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        found = await self._ended()
        for number, data in ((1, found.stdout), (2, found.stderr)):
            if data:
                yield number, data

    async def write(self, data: bytes) -> None:
        del data
        raise Unsupported(f"{self._name} takes a command's input only with the command")

    async def end_of_input(self) -> None:
        """There was no more than the action's own."""

    async def signal(self, number: int) -> None:
        if number not in {2, 9, 15}:
            raise Unsupported(f"{self._name} sends a running command no signal but its end")
        self._killed = True
        self._task.cancel()

    async def resize(self, rows: int, columns: int) -> None:
        del rows, columns
        raise Unsupported(f"{self._name} has no terminals")

    async def wait(self) -> Observation:
        return replace(await self._ended(), stdout=b"", stderr=b"")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _ended(self) -> Observation:
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._killed or not self._task.cancelled():
                raise
            return Observation(137)
