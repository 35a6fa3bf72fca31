"""The blocks of a tar archive, one at a time: bytes in, values out. Strict, for archives may be hostile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from excise.errors import ImageError

BLOCK = 512
ZEROS = bytes(BLOCK)
LARGEST_RECORDS = 4 * 1024 * 1024
"""More than the longest path and a file's whole room for extended attributes."""

_CHECKSUM = slice(148, 156)
_DIGITS = re.compile(rb"-?[0-9]{1,19}")
_MTIME = re.compile(rb"(-?)([0-9]{1,18})(?:\.([0-9]{0,64}))?")
_FARTHEST_S = 9_000_000_000
"""The year 2255: what nanoseconds in 64 bits can still say."""


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of one header block."""

    name: bytes
    mode: int
    uid: int
    gid: int
    size: int
    mtime_s: int
    kind: bytes
    link: bytes
    gnu: bool
    block: bytes


def read_header(block: bytes) -> Header:
    """The header in `block`; ImageError unless its checksum and its numbers are right."""
    if len(block) != BLOCK:
        raise ImageError("the layer's archive ends within a header")
    total = sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" ")
    claimed = number(block[_CHECKSUM])
    if claimed not in (total, total - 256 * _high_bytes(block)):
        raise ImageError("the layer's archive has a damaged header")
    gnu, name = block[257:265] == b"ustar  \0", text(block[:100])
    if block[257:262] == b"ustar" and not gnu:
        prefix = text(block[345:500])
        name = prefix + b"/" + name if prefix else name
    return Header(
        name=name,
        mode=natural(block[100:108]) & 0o7777,
        uid=natural(block[108:116]),
        gid=natural(block[116:124]),
        size=natural(block[124:136]),
        mtime_s=number(block[136:148]),
        kind=block[156:157],
        link=text(block[157:257]),
        gnu=gnu,
        block=block,
    )


def number(field: bytes) -> int:
    """A numeric field: octal digits, or a big-endian number where they would not have fit."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big", signed=False)
        bits = 8 * len(field)
        return value - (1 << bits) if field[0] == 0xFF else value - (1 << (bits - 1))
    digits = field.strip(b" \0")
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        raise ImageError("the layer's archive has a header with a number that is none") from None


def natural(field: bytes) -> int:
    """A numeric field that cannot be negative."""
    value = number(field)
    if not 0 <= value < 1 << 63:
        raise ImageError("the layer's archive has a header with an impossible number")
    return value


def text(field: bytes) -> bytes:
    """A field up to its first NUL."""
    return field.partition(b"\0")[0]


def read_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The `length key=value` lines of an extended header."""
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 20)
        digits = data[at:space] if space > at else b""
        if not digits.isdigit():
            raise ImageError("the layer's archive has a damaged extended header")
        end = at + int(digits)
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        if end > len(data) or end <= space + 1 or data[end - 1 : end] != b"\n" or not equals:
            raise ImageError("the layer's archive has a damaged extended header")
        yield key, value
        at = end


def decimal(value: bytes) -> int:
    """A number in an extended header that cannot be negative."""
    if not _DIGITS.fullmatch(value) or not 0 <= int(value) < 1 << 63:
        raise ImageError("the layer's archive has an extended header with an impossible number")
    return int(value)


def nanoseconds(value: bytes) -> int:
    """A time in an extended header: seconds with as many decimals as one likes."""
    match = _MTIME.fullmatch(value)
    if match is None:
        raise ImageError("the layer's archive has an extended header with an impossible time")
    fraction = int((match[3] or b"").ljust(9, b"0")[:9])
    total = int(match[2]) * 1_000_000_000 + fraction
    return bounded(-total if match[1] else total)


def bounded(ns: int) -> int:
    """A time that a file can have."""
    most = _FARTHEST_S * 1_000_000_000
    return max(-most, min(most, ns))


def _high_bytes(block: bytes) -> int:
    """Old programs added up signed bytes."""
    outside = block[: _CHECKSUM.start] + block[_CHECKSUM.stop :]
    return sum(byte >> 7 for byte in outside)
