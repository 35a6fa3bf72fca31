"""How files look, as bytes to compare, for substrates that can be asked for one at a time only."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from excise.substrates.base import Entry, EntryKind, Tree
from excise.types import Handle

_LOOK = struct.Struct("<BIIQq")
_KINDS = {kind: number for number, kind in enumerate(EntryKind, 1)}


def look_of(entry: Entry | None, *, kind_alone: bool) -> bytes:
    """Equal for what looks the same; all zeros for what is not there."""
    if entry is None:
        return bytes(_LOOK.size)
    kind = _KINDS[entry.kind]
    if kind_alone:
        return _LOOK.pack(kind, 0, 0, 0, 0)
    return _LOOK.pack(kind, entry.mode, entry.uid, entry.size, entry.modified_ns)


async def look_one_by_one(
    tree: Tree, box: Handle, paths: Sequence[str], kinds: Sequence[str]
) -> bytes:
    """`Tree.look` by as many questions as there are paths."""
    found = []
    for at, path in enumerate((*paths, *kinds)):
        try:
            entry = await tree.stat(box, path)
        except OSError:
            entry = None
        found.append(look_of(entry, kind_alone=at >= len(paths)))
    return b"".join(found)
