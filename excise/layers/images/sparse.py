"""Files with holes, as tar writes them: which bytes of the archive belong where in the file. GNU's four ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from excise.errors import ImageError
from excise.layers.images.tarheader import BLOCK, Header, decimal, natural

Records = Sequence[tuple[bytes, bytes]]
Extents = tuple[tuple[int, int], ...]

MOST_EXTENTS = 100_000
_FIRST = 4
_FURTHER = 21


@dataclass(frozen=True, slots=True)
class Holes:
    """Where a file's bytes go, how long it is, and how much of its place in the archive told us that."""

    extents: Extents
    size: int
    told_in: int = 0
    name: bytes | None = None


def holes_of(
    header: Header, records: Records, stored: int, read: Callable[[int], bytes]
) -> Holes | None:
    """The holes of the file that `header` and `records` begin; None if it has none. `read` goes on from there."""
    known = dict(records)
    if header.kind == b"S":
        holes = _in_blocks(header, read)
    elif known.get(b"GNU.sparse.major") == b"1" and known.get(b"GNU.sparse.minor") == b"0":
        holes = _in_data(known, stored, read)
    elif b"GNU.sparse.map" in known:
        holes = _held(known, _pairs(known[b"GNU.sparse.map"].split(b",")))
    elif b"GNU.sparse.size" in known:
        starts = [value for key, value in records if key == b"GNU.sparse.offset"]
        lengths = [value for key, value in records if key == b"GNU.sparse.numbytes"]
        if len(starts) != len(lengths):
            raise _damaged()
        holes = _held(
            known, _pairs([n for pair in zip(starts, lengths, strict=True) for n in pair])
        )
    else:
        return None
    _check(holes, stored - holes.told_in)
    return holes


def _in_blocks(header: Header, read: Callable[[int], bytes]) -> Holes:
    block, extents = header.block, _extents(header.block[386:], _FIRST)
    more = block[482]
    while more:
        block = read(BLOCK)
        if len(block) != BLOCK or len(extents) > MOST_EXTENTS:
            raise _damaged()
        extents += _extents(block, _FURTHER)
        more = block[504]
    return Holes(tuple(extents), natural(header.block[483:495]))


def _extents(block: bytes, most: int) -> list[tuple[int, int]]:
    extents = []
    for at in range(0, most * 24, 24):
        if not block[at]:
            break
        extents.append((natural(block[at : at + 12]), natural(block[at + 12 : at + 24])))
    return extents


def _in_data(known: dict[bytes, bytes], stored: int, read: Callable[[int], bytes]) -> Holes:
    """The map stands before the file's bytes, as lines of digits filled up to whole blocks."""
    lines: list[bytes] = []
    rest, told_in, wanted = b"", 0, 1
    while len(lines) < wanted:
        block = read(BLOCK) if told_in + BLOCK <= stored else b""
        if len(block) != BLOCK:
            raise _damaged()
        told_in += BLOCK
        *whole, rest = (rest + block).split(b"\n")
        lines += whole
        if lines:
            wanted = 1 + 2 * decimal(lines[0])
        if wanted > 1 + 2 * MOST_EXTENTS or len(rest) > 2 * BLOCK:
            raise _damaged()
    size = decimal(known.get(b"GNU.sparse.realsize", b""))
    return Holes(_pairs(lines[1:wanted]), size, told_in, known.get(b"GNU.sparse.name"))


def _held(known: dict[bytes, bytes], extents: Extents) -> Holes:
    return Holes(
        extents, decimal(known.get(b"GNU.sparse.size", b"")), name=known.get(b"GNU.sparse.name")
    )


def _pairs(numbers: Sequence[bytes]) -> Extents:
    if len(numbers) % 2 or len(numbers) > 2 * MOST_EXTENTS:
        raise _damaged()
    values = [decimal(number) for number in numbers]
    return tuple(zip(values[::2], values[1::2], strict=True))


def _check(holes: Holes, stored: int) -> None:
    end = 0
    for start, length in holes.extents:
        if start < end:
            raise _damaged()
        end = start + length
    if end > holes.size or sum(length for _, length in holes.extents) != stored:
        raise _damaged()


def _damaged() -> ImageError:
    return ImageError("the layer's archive has a damaged map of a file with holes")
