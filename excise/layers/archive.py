"""Members to a tar archive that is the same, byte for byte, whenever the members are."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from excise.layers.tree import Member


class _Hashed(io.RawIOBase):
    """Passes what is written on to a file and remembers its digest."""

    def __init__(self, into: BinaryIO) -> None:
        self._into = into
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = memoryview(data)  # type: ignore[arg-type]  # RawIOBase's buffer has no name in 3.11
        self.sha256.update(chunk)
        return self._into.write(chunk)


def with_parents(members: Iterable[Member]) -> list[Member]:
    """`members` sorted by path, one per path (the first wins), with the folders above them."""
    by_path: dict[str, Member] = {}
    for member in members:
        by_path.setdefault(member.path, member)
    for path in list(by_path):
        for parent in PurePosixPath(path).parents:
            if str(parent) != ".":
                by_path.setdefault(str(parent), Member(str(parent), 0o755))
    return [by_path[path] for path in sorted(by_path)]


def write_archive(members: Iterable[Member], into: Path) -> str:
    """Write `members`, all owned by root, hard links kept; returns the SHA-256 of the archive."""
    seen: dict[tuple[int, int], str] = {}
    with into.open("wb") as file:
        hashed = _Hashed(file)
        with tarfile.open(fileobj=hashed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for member in members:
                _add(tar, member, seen)
    return hashed.sha256.hexdigest()


def _add(tar: tarfile.TarFile, member: Member, seen: dict[tuple[int, int], str]) -> None:
    entry = tarfile.TarInfo(member.path)
    entry.mode, entry.mtime, entry.uname, entry.gname = member.mode, member.mtime_s, "root", "root"
    if member.is_folder:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    elif member.target is not None:
        entry.type, entry.linkname = tarfile.SYMTYPE, member.target
        tar.addfile(entry)
    elif member.inode in seen:
        entry.type, entry.linkname = tarfile.LNKTYPE, seen[member.inode]
        tar.addfile(entry)
    elif member.source is not None:
        if member.inode is not None:
            seen[member.inode] = member.path
        entry.size = member.size
        with member.source.open("rb") as source:
            tar.addfile(entry, source)
    else:
        data = member.data or b""
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
