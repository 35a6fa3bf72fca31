"""How one connection carries two streams: every stretch of a log begins with three bytes that name its stream. Pure.

A piece of output is passed on as it came. Output that itself contains such three bytes cannot be told from a mark by
the SDK, whose format this is.
"""

from __future__ import annotations

from collections.abc import Iterable

STDOUT = b"\x01\x01\x01"
STDERR = b"\x02\x02\x02"
MARKS = {1: STDOUT, 2: STDERR}


def marked(pieces: Iterable[tuple[int, bytes]]) -> bytes:
    """Pieces of both streams in one: a mark wherever the stream changes."""
    parts, before = [], 0
    for stream, data in pieces:
        if not data:
            continue
        if stream != before:
            parts.append(MARKS[stream])
            before = stream
        parts.append(data)
    return b"".join(parts)


def stream_of(pieces: Iterable[tuple[int, bytes]], stream: int) -> bytes:
    """What came on one of them."""
    return b"".join(data for each, data in pieces if each == stream)
