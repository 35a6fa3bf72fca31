"""Files as the archives that the engine's API takes and gives."""

from __future__ import annotations

import io
import posixpath
import tarfile
import time
from pathlib import Path

from excise.errors import InputError
from excise.layers.archive import with_parents, write_archive
from excise.layers.tree import walk
from excise.substrates.container.config import WORKSPACE


def absolute(path: str) -> str:
    """A path of the sandbox; a relative one counts from the workspace."""
    return posixpath.normpath(posixpath.join(WORKSPACE, path))


def packed(path: str, data: bytes) -> io.BytesIO:
    """An archive to be unpacked at `/`: one file; the engine makes the folders that are missing."""
    entry = tarfile.TarInfo(absolute(path).lstrip("/"))
    entry.size, entry.mode, entry.mtime = len(data), 0o644, int(time.time())
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(entry, io.BytesIO(data))
    into.seek(0)
    return into


def unpacked(path: str, archive: tarfile.TarFile) -> tuple[bytes | None, str | None]:
    """The content of the one file in an archive, or where the symbolic link in it leads."""
    entry = archive.next()
    if entry is None:
        raise FileNotFoundError(path)
    if entry.issym():
        return None, posixpath.join(posixpath.dirname(absolute(path)), entry.linkname)
    if entry.isdir():
        raise IsADirectoryError(path)
    content = archive.extractfile(entry)
    return (b"" if content is None else content.read()), None


def pack(checkout: Path, at: str, archive: Path) -> None:
    if not checkout.is_dir():
        raise InputError(f"{checkout} is not a checkout: there is no such folder")
    write_archive(with_parents(walk(checkout, at)), archive)
