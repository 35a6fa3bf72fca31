"""What something wrote, kept for whoever comes to read it: from the start as far as it is kept, and then as it comes.

While somebody follows, the writer waits for the slowest of them; while nobody does, the oldest is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import NamedTuple

PIECE_BYTES = 16 * 1024
"""Smaller pieces are put together, so that a program that writes single bytes costs little more than its output."""


class Piece(NamedTuple):
    """Output from `at` on, counted over both streams since the start; `stream` is 1, 2, or 0 for a gap.

    A gap is output that was forgotten before this follower read it: its `data` is empty, and the next piece
    says where it goes on.
    """

    at: int
    stream: int
    data: bytes


_FIRST = object()
"""The follower that has been announced and has not come yet."""


class Tape:
    """One ring of pieces on numbered streams, with any number of followers.

    `awaited`: one of them is about to come, and wants all from the start.
    """

    def __init__(self, keep_bytes: int, *, awaited: bool = False) -> None:
        self.written = 0
        """Bytes so far, on all streams."""
        self.closed = False
        self._error: BaseException | None = None
        self._keep_bytes = keep_bytes
        self._kept: deque[Piece] = deque()
        self._kept_bytes = 0
        self._read: dict[object, int] = {_FIRST: 0} if awaited else {}
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

    def close(self, error: BaseException | None = None) -> None:
        """Nothing more will come; whoever follows hears of an error, once he has heard all else."""
        self.closed, self._error = True, error
        self._tell()

    def forget(self) -> None:
        """Keep nothing of what was written so far."""
        self._kept.clear()
        self._kept_bytes = 0

    def kept(self) -> list[tuple[int, bytes]]:
        """Streams and pieces, as far as they are kept."""
        return [(piece.stream, piece.data) for piece in self._kept]

    async def follow(self, since: int = 0) -> AsyncGenerator[Piece, None]:
        """All from there on that is kept and all that comes, until it is closed."""
        me, at = object(), since
        self._read[me] = at
        self._read.pop(_FIRST, None)
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
        if self._error is not None:
            raise self._error

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
