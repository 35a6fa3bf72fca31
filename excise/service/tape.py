"""What something wrote, kept for whoever comes to read it: from the start as far as it is kept, and then as it comes.

While somebody follows, the writer waits for the slowest of them; while nobody does, the oldest is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from excise.service.processes import Piece

PIECE_BYTES = 16 * 1024
"""Smaller pieces are put together, so that a program that writes single bytes costs little more than its output."""


class Tape:
    """One ring of pieces on numbered streams, with any number of followers."""

    def __init__(self, keep_bytes: int) -> None:
        self.written = 0
        """Bytes so far, on all streams."""
        self.closed = False
        self._keep_bytes = keep_bytes
        self._kept: deque[Piece] = deque()
        self._kept_bytes = 0
        self._read: dict[object, int] = {}
        self._news: set[asyncio.Future[None]] = set()
        self._room = asyncio.Event()

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def add(self, stream: int, data: bytes) -> None:
        """More was written."""
        if not data:
            return
        last = self._kept[-1] if self._kept else None
        if last and last.stream == stream and len(last.data) + len(data) <= PIECE_BYTES:
            self._kept[-1] = Piece(last.at, stream, last.data + data)
        else:
            self._kept.append(Piece(self.written, stream, data))
        self._kept_bytes += len(data)
        self.written += len(data)
        unread = min(self._read.values(), default=self.written)
        while self._kept_bytes > self._keep_bytes:
            oldest = self._kept[0]
            if oldest.at + len(oldest.data) > unread:
                break
            self._kept_bytes -= len(self._kept.popleft().data)
        self._tell()

    async def room(self) -> None:
        """Wait until the slowest follower has read enough of it."""
        while self._read and self.written - min(self._read.values()) > self._keep_bytes:
            self._room.clear()
            await self._room.wait()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._tell()

    def forget(self) -> None:
        """Keep nothing of what was written so far."""
        self._kept.clear()
        self._kept_bytes = 0

    def kept(self) -> list[tuple[int, bytes]]:
        """Streams and pieces, as far as they are kept."""
        return [(piece.stream, piece.data) for piece in self._kept]

    async def follow(self) -> AsyncIterator[Piece]:
        """All that is kept and all that comes, until it is closed. A piece of stream 0 is a gap."""
        me, at = object(), 0
        self._read[me] = at
        try:
            while True:
                for piece in self._from(at):
                    at = piece.at + len(piece.data)
                    self._read[me] = at
                    self._room.set()
                    yield piece
                if at >= self.written:
                    if self.closed:
                        break
                    await self._wait_for_news()
        finally:
            del self._read[me]
            self._room.set()

    def _from(self, at: int) -> list[Piece]:
        """What is kept from there on; a gap first where some is not kept any more."""
        if at >= self.written:
            return []
        found: list[Piece] = []
        for piece in reversed(self._kept):
            if piece.at + len(piece.data) <= at:
                break
            found.append(piece)
        found.reverse()
        if not found:
            return [Piece(self.written, 0, b"")]
        first = found[0]
        if first.at > at:
            return [Piece(first.at, 0, b""), *found]
        return [Piece(at, first.stream, first.data[at - first.at :]), *found[1:]]

    async def _wait_for_news(self) -> None:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news.add(news)
        try:
            await news
        finally:
            self._news.discard(news)

    def _tell(self) -> None:
        for news in self._news:
            if not news.done():
                news.set_result(None)
