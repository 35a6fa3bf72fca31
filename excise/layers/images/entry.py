"""One thing that stands in a root file system, wherever it was read from; and what a layer hides below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from excise.errors import ImageError

Parts = tuple[bytes, ...]
"""A path from the image's root, without `.` and `..`; the root itself is empty."""

LONGEST_NAME = 255
LONGEST_PATH = 3584
"""What Linux takes in one path, less the place of the store."""

_WHITEOUT = b".wh."
_OF_THE_TOOL = b".wh..wh."
_OPAQUE = b".wh..wh..opq"


class Kind(Enum):
    """What an entry is. A hard link is its target under another name."""

    FILE = auto()
    FOLDER = auto()
    SYMLINK = auto()
    HARDLINK = auto()
    FIFO = auto()
    DEVICE = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    """A name and what it names. `data` is read once, in order: offsets and bytes; what lies between is zeros."""

    path: bytes
    kind: Kind
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    target: bytes = b""
    xattrs: Mapping[bytes, bytes] = field(default_factory=dict)
    data: Iterable[tuple[int, bytes]] = ()


@dataclass(frozen=True, slots=True)
class Hides:
    """The layer hides what layers below it have at `parts`; with `all_below`, what they have inside of it."""

    parts: Parts
    all_below: bool = False


def parts_of(path: bytes) -> Parts:
    """`path` from the root, as tar has it: a leading slash means nothing; to climb with `..` is refused."""
    parts = tuple(part for part in path.split(b"/") if part not in (b"", b"."))
    if b".." in parts:
        raise ImageError(f"the layer has {shown(path)}: a path that climbs with .. is refused")
    if b"\0" in path or len(path) > LONGEST_PATH or any(len(p) > LONGEST_NAME for p in parts):
        raise ImageError(f"the layer has {shown(path)}: no file system can hold that name")
    return parts


def hidden_by(parts: Parts) -> Hides | None:
    """What a tar entry called `parts` hides, if that is all it is for."""
    if not parts or not parts[-1].startswith(_WHITEOUT):
        return None
    folder, name = parts[:-1], parts[-1]
    if name == _OPAQUE:
        return Hides(folder, all_below=True)
    hidden = name.removeprefix(_WHITEOUT)
    if hidden in (b"", b".", b".."):
        raise ImageError(f"the layer has {shown(b'/'.join(parts))}, which hides nothing")
    return Hides((*folder, hidden))


def is_bookkeeping(parts: Parts) -> bool:
    """Whether a tar entry is a note of an old storage driver to itself, and means nothing."""
    return any(p.startswith(_OF_THE_TOOL) for p in parts) and parts[-1] != _OPAQUE


def shown(path: bytes) -> str:
    """A path of any bytes as one short, printable line."""
    text = ascii(path.decode("utf-8", "surrogateescape"))
    return text if len(text) <= 200 else f"{text[:200]}..."
