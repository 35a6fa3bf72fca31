"""What a tree of files is, as one digest, and what it weighs.

The digest covers every name, type, mode, owner, size, device number, link target, content and the extended
attributes that mean something in a root file system. It leaves out times, which differ between two builds of
the same thing, and which files are hard links of each other.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.errors import LayerError

_KEPT = (b"user.", b"trusted.overlay.", b"security.capability", b"system.posix_acl_")
_BLOCK = 512  # what st_blocks counts in, on every Linux


@dataclass(frozen=True, slots=True)
class Weight:
    """A tree's digest, the bytes it takes on disk, and how many entries it has below its top."""

    digest: str
    bytes: int
    entries: int


def weigh(top: Path) -> Weight:
    """Read all below `top`; files that are linked twice take their bytes once."""
    sha256 = hashlib.sha256()
    seen: set[tuple[int, int]] = set()
    taken = entries = 0
    for path, name, status in _entries(os.fsencode(top)):
        sha256.update(_identity(path, name, status))
        entries += 1
        inode = (status.st_dev, status.st_ino)
        if status.st_nlink == 1 or inode not in seen:
            taken += status.st_blocks * _BLOCK
            if status.st_nlink > 1:
                seen.add(inode)
    return Weight(f"sha256:{sha256.hexdigest()}", taken, entries - 1)


def _entries(top: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result]]:
    """Path, path from the top, and status of `top` and all below it, always in the same order."""
    ahead = [(top, b"")]
    while ahead:
        path, name = ahead.pop()
        try:
            status = os.lstat(path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise LayerError(
                    "the tree is deeper than paths can name: make it flatter"
                ) from None
            raise
        yield path, name, status
        if stat.S_ISDIR(status.st_mode):
            below = sorted(os.listdir(path), reverse=True)  # noqa: PTH208  (bytes: names need not be text)
            ahead += [(path + b"/" + n, name + b"/" + n) for n in below]


def _identity(path: bytes, name: bytes, status: os.stat_result) -> bytes:
    mode = status.st_mode
    about: list[object] = [name, mode, status.st_uid, status.st_gid, _attributes(path)]
    if stat.S_ISREG(mode):
        about += [status.st_size, _content(path)]
    elif stat.S_ISLNK(mode):
        about.append(os.readlink(path))  # noqa: PTH115  (bytes)
    elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        about.append(status.st_rdev)
    return repr(about).encode("ascii")


def _content(path: bytes) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:  # noqa: PTH123  (a descriptor, not a path)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _attributes(path: bytes) -> list[tuple[bytes, bytes]]:
    try:
        names = sorted(map(os.fsencode, os.listxattr(path, follow_symlinks=False)))
    except OSError as error:
        if error.errno in {errno.ENOTSUP, errno.EPERM}:
            return []
        raise
    return [
        (name, os.getxattr(path, name, follow_symlinks=False))
        for name in names
        if name.startswith(_KEPT)
    ]
