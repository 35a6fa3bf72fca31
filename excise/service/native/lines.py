"""An answer that comes line by line, as long as there is something to say and somebody who listens."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from excise.service.native.operation import LINES, Call

STALLED_S = 60.0
"""A client that takes nothing for so long is let go; the process it followed goes on."""

_encode = msgspec.json.Encoder().encode


class Lines:
    """`async with Lines(call) as lines: await lines.say(value)`."""

    def __init__(self, call: Call) -> None:
        self._request = call.request
        self._counted = call.desk.streaming(call.owner)
        self.response = web.StreamResponse(headers={"Cache-Control": "no-store"})
        self.response.content_type = LINES

    async def __aenter__(self) -> Self:
        self._counted.__enter__()
        try:
            await self.response.prepare(self._request)
        except BaseException:
            self._counted.__exit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self.response.write_eof()
        finally:
            self._counted.__exit__(None, None, None)

    async def say(self, value: object) -> None:
        """One value more."""
        await self._write(_encode(value) + b"\n")

    async def line(self, line: bytes) -> None:
        """One line that is encoded already."""
        await self._write(line)

    async def beat(self) -> None:
        """Nothing happened; the connection is alive."""
        await self._write(b"\n")

    async def _write(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(STALLED_S):
                await self.response.write(data)
        except TimeoutError:
            transport = self._request.transport
            if transport is not None:
                transport.abort()
            raise ConnectionResetError("the client takes nothing") from None
