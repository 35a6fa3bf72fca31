"""git's index, told that files still are what it wrote although their times are others now: no file is read again.

Only what is understood is touched: an index of version 2, as git writes it by default.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from pathlib import Path

_HEADER = struct.Struct(">4sII")
_TIMES = struct.Struct(">IIII")
_FIXED = 40
"""Bytes of an entry before its object id: two times, device, inode, mode, owner, group, size."""

_MODE_AT, _LENGTH_MASK = 24, 0xFFF
_LINKED_MODE = 0o160000
_MASK = (1 << 32) - 1


class NotUnderstood(ValueError):
    """This index is of another version, or not one at all."""


def restat(place: Path, id_bytes: int) -> None:
    """Give every entry of `place`/.git/index the times that its file has now."""
    file = place / ".git" / "index"
    data = bytearray(file.read_bytes())
    top = os.fsencode(place)
    for at, name in entries(data, id_bytes):
        (mode,) = struct.unpack_from(">I", data, at + _MODE_AT)
        if stat.S_IFMT(mode) == _LINKED_MODE:
            continue
        status = os.lstat(top + b"/" + name)
        _TIMES.pack_into(data, at, *_split(status.st_ctime_ns), *_split(status.st_mtime_ns))
    sum_of = hashlib.sha1 if id_bytes == 20 else hashlib.sha256
    data[-id_bytes:] = sum_of(data[:-id_bytes]).digest()
    new = file.with_suffix(".lock")  # git's own name for it: nobody ever reads half an index
    new.write_bytes(data)
    new.replace(file)


def entries(data: bytes | bytearray, id_bytes: int) -> list[tuple[int, bytes]]:
    """Where each entry begins, and the name it is of."""
    try:
        magic, version, count = _HEADER.unpack_from(data)
        if (magic, version) != (b"DIRC", 2):
            raise NotUnderstood(f"an index of version {version}")
        found, at = [], _HEADER.size
        for _ in range(count):
            name_at = at + _FIXED + id_bytes + 2
            (flags,) = struct.unpack_from(">H", data, name_at - 2)
            length = flags & _LENGTH_MASK
            end = name_at + length if length < _LENGTH_MASK else data.index(0, name_at)
            found.append((at, bytes(data[name_at:end])))
            at += (end - at) // 8 * 8 + 8
    except (struct.error, ValueError) as error:
        raise NotUnderstood(str(error)) from error
    if at > len(data) - id_bytes:
        raise NotUnderstood("an index that ends too soon")
    return found


def _split(ns: int) -> tuple[int, int]:
    return (ns // 10**9) & _MASK, ns % 10**9
