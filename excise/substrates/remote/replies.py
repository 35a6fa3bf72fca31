"""HTTP/1.1 answers from bytes, without I/O: exactly what a client of ours needs, and every size bounded.

Strict on purpose: an answer that has both a length and chunks, two lengths, a header without a colon or a line
that ends in a bare newline is no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from excise.types import GIB

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 2 * GIB
MOST_LINE_BYTES = 1024
_NO_BODY = frozenset({204, 304})


class _Chunk(Enum):
    """What of a chunk is expected next."""

    SIZE = auto()
    DATA = auto()
    GAP = auto()
    LAST = auto()


class BadAnswer(Exception):
    """What came is no answer that we take. The connection is of no use any more."""


@dataclass(slots=True)
class Head:
    """Status and headers, by names in lower case; a header that comes twice keeps its last value."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    keeps: bool = True
    """The connection may be used again."""


class Reply:
    """One answer, fed as it comes. `head` is there first, then `take` gives the body's bytes, until `done`."""

    __slots__ = ("_at", "_buffer", "_chunked", "_left", "_size", "_without", "done", "head")

    def __init__(self, *, without_body: bool = False) -> None:
        self.head: Head | None = None
        self.done = False
        self._buffer = bytearray()
        self._left: int | None = None
        """Bytes of the body, or of the chunk, that are still to come; None: until the connection ends."""
        self._chunked = False
        self._at = _Chunk.SIZE
        self._size = 0
        self._without = without_body

    @property
    def begun(self) -> bool:
        """Something of it has come."""
        return self.head is not None or bool(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take what came. After `done`, anything more is a BadAnswer: nobody asked for it."""
        if self.done:
            raise BadAnswer("bytes after the end of an answer")
        self._buffer += data
        while self.head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0 or end > MOST_HEAD_BYTES:
                if len(self._buffer) > MOST_HEAD_BYTES:
                    raise BadAnswer(f"a head of more than {MOST_HEAD_BYTES} bytes")
                return
            head = parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if head.status >= 200:  # those below announce that an answer comes
                self._begin(head)

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        if self.head is None or self.done:
            return b""
        parts = list(self._chunks() if self._chunked else self._plain())
        found = parts[0] if len(parts) == 1 else b"".join(parts)
        self._size += len(found)
        if self._size > MOST_BODY_BYTES:
            raise BadAnswer(f"a body of more than {MOST_BODY_BYTES} bytes")
        self._nothing_follows()
        return found

    def end(self) -> None:
        """The connection has ended: so has an answer without a length; any other is cut short."""
        if self.done:
            return
        if self.head is None or self._chunked or self._left is not None:
            raise BadAnswer("the connection ended within an answer")
        self.done = True

    def _begin(self, head: Head) -> None:
        self.head = head
        length, coding = head.headers.get("content-length"), head.headers.get("transfer-encoding")
        if self._without or head.status in _NO_BODY:
            self._left, self.done = 0, True
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise BadAnswer(f"a body coded as {coding!r}")
            self._chunked, self._left = True, 0
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or int(length) > MOST_BODY_BYTES:
                raise BadAnswer(f"a body of {length[:40]!r} bytes")
            self._left = int(length)
            self.done = self._left == 0
        else:
            head.keeps = False
        self._nothing_follows()

    def _nothing_follows(self) -> None:
        if self.done and self._buffer:
            raise BadAnswer("bytes after the end of an answer")

    def _plain(self) -> Iterator[bytes]:
        if self._left is None:
            found = bytes(self._buffer)
            self._buffer.clear()
        else:
            found = bytes(self._buffer[: self._left])
            del self._buffer[: self._left]
            self._left -= len(found)
            self.done = self._left == 0
        if found:
            yield found

    def _chunks(self) -> Iterator[bytes]:
        while not self.done:
            if self._at is _Chunk.DATA:
                found = bytes(self._buffer[: self._left])
                if not found:
                    return
                del self._buffer[: len(found)]
                self._left = (self._left or 0) - len(found)
                if self._left == 0:
                    self._at = _Chunk.GAP
                yield found
            elif self._at is _Chunk.SIZE:
                line = self._line()
                if line is None:
                    return
                self._left = _chunk_size(line)
                self._at = _Chunk.DATA if self._left else _Chunk.LAST
            elif not self._line_end():
                return
            elif self._at is _Chunk.LAST:
                self.done = True
            else:
                self._at = _Chunk.SIZE

    def _line_end(self) -> bool:
        """After a chunk, and after the last one: trailers are never asked for, and refused."""
        if len(self._buffer) < 2:
            return False
        if not self._buffer.startswith(b"\r\n"):
            raise BadAnswer("a chunk that is longer than it says, or a trailer")
        del self._buffer[:2]
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, MOST_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= MOST_LINE_BYTES:
                raise BadAnswer("a chunk without a size")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line


def parse_head(data: bytes) -> Head:
    """Status line and headers, without the empty line that ends them."""
    lines = data.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    status = rest[:3]
    if version not in {"HTTP/1.1", "HTTP/1.0"} or not (status.isascii() and status.isdigit()):
        raise BadAnswer(f"no status line: {lines[0][:80]!r}")
    head = Head(int(status), keeps=version == "HTTP/1.1")
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or "\n" in line or "\r" in line:
            raise BadAnswer(f"no header: {line[:80]!r}")
        if name == "content-length" and head.headers.get(name, value.strip()) != value.strip():
            raise BadAnswer("two lengths in one answer")
        head.headers[name] = value.strip()
    if head.headers.get("connection", "").lower() == "close":
        head.keeps = False
    return head


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadAnswer(f"a chunk of {line[:40]!r} bytes")
    return int(digits, 16)
