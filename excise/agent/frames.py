"""Bytes into frames, however they were cut on the way. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from excise.agent.errors import AgentProtocolError
from excise.agent.wire import ANSWERS, HEAD, HEAD_BYTES

ANSWER_LIMIT = 1 << 30
"""No answer is larger: output is capped by whoever asks, and everything else comes in pieces."""


class Frame(NamedTuple):
    """One message: what it is, about which action, and its body."""

    op: int
    flags: int
    id: int
    body: bytes


class Frames:
    """An incremental decoder. What is not a whole frame yet is kept; what can never be one raises.

    `ops` are those that may come: the agent's answers unless told.
    """

    def __init__(self, limit: int = ANSWER_LIMIT, ops: frozenset[int] = ANSWERS) -> None:
        self._limit = limit
        self._ops = ops
        self._kept = bytearray()
        self._wanted = HEAD_BYTES
        self._broken: str | None = None

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that are complete with `data`, in order."""
        if self._broken is not None:
            raise AgentProtocolError(self._broken)
        if not self._kept:
            frames, used = self._cut(data)
            if used < len(data):
                self._kept += memoryview(data)[used:]
            return frames
        self._kept += data
        if len(self._kept) < self._wanted:
            return []
        frames, used = self._cut(self._kept)
        del self._kept[:used]
        return frames

    @property
    def empty(self) -> bool:
        """No frame is begun: a connection that ends here ends cleanly."""
        return not self._kept

    def _cut(self, data: bytes | bytearray | memoryview) -> tuple[list[Frame], int]:
        frames = []
        at, size = 0, len(data)
        with memoryview(data) as view:
            while True:
                self._wanted = HEAD_BYTES
                if size - at < HEAD_BYTES:
                    break
                length, op, flags, zero, id_ = HEAD.unpack_from(view, at)
                if zero or op not in self._ops or length > self._limit:
                    self._refuse(length, op, zero)
                end = at + HEAD_BYTES + length
                if end > size:
                    self._wanted = HEAD_BYTES + length
                    break
                frames.append(Frame(op, flags, id_, bytes(view[at + HEAD_BYTES : end])))
                at = end
        return frames, at

    def _refuse(self, length: int, op: int, zero: int) -> None:
        if length > self._limit:
            self._broken = f"a frame of {length} bytes, and {self._limit} is the most"
        else:
            self._broken = f"not a frame: op {op}, reserved field {zero}"
        raise AgentProtocolError(self._broken)
