"""A tar archive read once, front to back, in bounded memory: bytes in, entries out.

Python's own reader takes the size of an extended header on trust, ends quietly at a damaged one, and keeps
every entry in memory. This one refuses. It reads what ustar, GNU tar, pax and Go write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from excise.errors import ImageError
from excise.layers.images import sparse
from excise.layers.images.entry import Entry, Kind, shown
from excise.layers.images.tarheader import (
    BLOCK,
    LARGEST_RECORDS,
    ZEROS,
    Header,
    bounded,
    decimal,
    nanoseconds,
    read_header,
    read_records,
    text,
)

CHUNK = 1024 * 1024
_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"S": Kind.FILE,
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.DEVICE,
    b"4": Kind.DEVICE,
    b"5": Kind.FOLDER,
    b"6": Kind.FIFO,
}
_SPEAK_OF_OTHERS = (b"x", b"g", b"L", b"K", b"X")
_XATTR = b"SCHILY.xattr."
_NO_ID = 0xFFFFFFFF
"""The one number that the kernel takes for "leave it"."""


class Reads(Protocol):
    """Bytes, in order; fewer than asked for only at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(slots=True)
class _Ahead:
    """What extended headers have said of the entry to come."""

    records: list[tuple[bytes, bytes]]
    name: bytes | None = None
    link: bytes | None = None
    size: int = 0

    def make_room(self, size: int) -> None:
        self.size += size
        if self.size > LARGEST_RECORDS:
            raise ImageError("the layer's archive has an extended header of absurd size")


class _Body:
    """The bytes of one entry, of which the reader may leave some."""

    def __init__(self, source: Reads, stored: int, extents: sparse.Extents) -> None:
        self._source = source
        self._left = stored
        self._padding = -stored % BLOCK
        self._extents = extents

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for start, length in self._extents:
            at, end = start, start + length
            while at < end:
                chunk = _exactly(self._source, min(CHUNK, end - at))
                self._left -= len(chunk)
                yield at, chunk
                at += len(chunk)

    def skip(self, pass_over: Callable[[int], object] | None) -> None:
        left = self._left + self._padding
        if pass_over is not None:
            pass_over(left)
            return
        while left:
            left -= len(_exactly(self._source, min(CHUNK, left)))


def read_entries(
    source: Reads, pass_over: Callable[[int], object] | None = None
) -> Iterator[Entry]:
    """Every entry of the archive; the data of one can be read until the next is asked for.

    `pass_over` moves `source` forward by so many bytes where that is quicker than to read them.
    """
    always: dict[bytes, bytes] = {}
    ahead = _Ahead([])
    while (block := source.read(BLOCK)) not in (b"", ZEROS):
        header = read_header(block)
        if header.kind in _SPEAK_OF_OTHERS:
            _read_ahead(source, header, ahead, always)
            continue
        entry, body = _entry(source, header, ahead, always)
        yield entry
        body.skip(pass_over)
        ahead = _Ahead([])
    if ahead.size:
        raise ImageError("the layer's archive ends after an extended header")
    if block and source.read(BLOCK) not in (b"", ZEROS):
        raise ImageError("the layer's archive has more after its end")


def _read_ahead(source: Reads, header: Header, ahead: _Ahead, always: dict[bytes, bytes]) -> None:
    ahead.make_room(header.size + BLOCK)
    data = _exactly(source, header.size)
    _exactly(source, -header.size % BLOCK)
    if header.kind == b"L":
        ahead.name = text(data)
    elif header.kind == b"K":
        ahead.link = text(data)
    elif header.kind == b"g":
        always.update(read_records(data))
        if sum(len(k) + len(v) for k, v in always.items()) > LARGEST_RECORDS:
            raise ImageError("the layer's archive has extended headers of absurd size")
        ahead.size -= header.size + BLOCK  # it is no part of an entry
    else:
        ahead.records += read_records(data)


def _entry(
    source: Reads, header: Header, ahead: _Ahead, always: dict[bytes, bytes]
) -> tuple[Entry, _Body]:
    said = {key: value for key, value in (always | dict(ahead.records)).items() if value}
    name = said.get(b"path") or ahead.name or header.name
    kind = _kind(header, name)
    stored = 0
    if kind is Kind.FILE:
        stored = decimal(said[b"size"]) if b"size" in said else header.size
    holes = (
        sparse.holes_of(header, ahead.records, stored, source.read) if kind is Kind.FILE else None
    )
    if holes is None:
        size, body = stored, _Body(source, stored, ((0, stored),))
    else:
        name = holes.name or name
        size, body = holes.size, _Body(source, stored - holes.told_in, holes.extents)
    entry = Entry(
        path=name,
        kind=kind,
        mode=header.mode,
        uid=_identity(said, b"uid", header.uid, name),
        gid=_identity(said, b"gid", header.gid, name),
        mtime_ns=_mtime_ns(said, header),
        size=size,
        target=said.get(b"linkpath") or ahead.link or header.link,
        xattrs={k.removeprefix(_XATTR): v for k, v in said.items() if k.startswith(_XATTR)},
        data=body,
    )
    return entry, body


def _kind(header: Header, name: bytes) -> Kind:
    kind = _KINDS.get(header.kind)
    if kind is None:
        raise ImageError(f"the layer has {shown(name)} of an unknown kind, {header.kind!r}")
    if header.kind == b"\0" and name.endswith(b"/"):  # from before there were folders
        return Kind.FOLDER
    return kind


def _identity(said: dict[bytes, bytes], key: bytes, plain: int, name: bytes) -> int:
    number = decimal(said[key]) if key in said else plain
    if number >= _NO_ID:
        raise ImageError(f"the layer gives {shown(name)} to {key.decode()} {number}, which is none")
    return number


def _mtime_ns(said: dict[bytes, bytes], header: Header) -> int:
    if b"mtime" in said:
        return nanoseconds(said[b"mtime"])
    return bounded(header.mtime_s * 1_000_000_000)


def _exactly(source: Reads, size: int) -> bytes:
    data = source.read(size)
    if len(data) != size:
        raise ImageError("the layer's archive ends too early")
    return data
