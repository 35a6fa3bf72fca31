"""A folder as an image. It is copied: an overlay may not have its lowers changed, and folders do change.

Which copy it is, a fingerprint of names, sizes, owners, modes and times says; the time of the last change of
each inode is among them, and nobody can set that one back. So an unchanged folder costs one walk, not a copy.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from excise.errors import ImageError, InputError
from excise.layers.images.entry import Entry, Kind
from excise.layers.images.tarstream import CHUNK

_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.FOLDER,
    stat.S_IFLNK: Kind.SYMLINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFCHR: Kind.DEVICE,
    stat.S_IFBLK: Kind.DEVICE,
}


def check(folder: Path, store: Path) -> Path:
    """The folder without links in its own name, if it can be an image."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name one that holds a root file system")
    real = folder.resolve()
    if real == Path("/"):
        raise InputError("the folder / is this host itself: write host")
    if store.resolve().is_relative_to(real) or real.is_relative_to(store.resolve()):
        raise InputError(f"{folder} and the store of layers at {store} are within each other")
    return real


def fingerprint(folder: Path) -> str:
    """64 hex digits that change whenever anything in the folder does; no file is opened."""
    sha256 = hashlib.sha256(b"excise-folder-1")
    for path, status in _walk(os.fsencode(folder)):
        facts = (status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_ino)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        sha256.update(repr((path, *facts, *times)).encode("ascii"))
    return sha256.hexdigest()


def entries_of(folder: Path) -> Iterator[Entry]:
    """Everything in the folder, the folder itself first. Other file systems mounted in it are left out."""
    top = os.fsencode(folder)
    linked: dict[int, bytes] = {}
    for path, status in _walk(top):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is None:  # a socket: nobody listens to a copy
            continue
        target = b""
        whole = top + b"/" + path
        if kind is Kind.SYMLINK:
            target = os.readlink(whole)  # noqa: PTH115  (bytes)
        elif kind is not Kind.FOLDER and status.st_nlink > 1:
            target = linked.setdefault(status.st_ino, path)
            kind, target = (kind, b"") if target == path else (Kind.HARDLINK, target)
        yield Entry(
            path=path,
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            mtime_ns=status.st_mtime_ns,
            size=status.st_size if kind is Kind.FILE else 0,
            target=target,
            xattrs=_attributes(whole) if kind in (Kind.FILE, Kind.FOLDER) else {},
            data=_data(whole, status.st_size) if kind is Kind.FILE else (),
        )


def _walk(top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Paths below the folder and their status, always in the same order, folders before what is in them."""
    device = os.lstat(top).st_dev
    ahead = [b""]
    while ahead:
        path = ahead.pop()
        whole = top + b"/" + path if path else top
        try:
            status = os.lstat(whole)
            inside = stat.S_ISDIR(status.st_mode) and status.st_dev == device
            names = sorted(os.listdir(whole), reverse=True) if inside else []  # noqa: PTH208  (bytes)
        except OSError as error:
            raise ImageError(f"{os.fsdecode(whole)!r} cannot be read: {error.strerror}") from error
        yield path, status
        ahead += [path + b"/" + name if path else name for name in names]


def _attributes(path: bytes) -> dict[bytes, bytes]:
    try:
        names = list(map(os.fsencode, os.listxattr(path, follow_symlinks=False)))
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names}


def _data(path: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """The file's bytes without its holes, as long as it was when it was listed."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        at = 0
        while at < size:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA)
                end = min(size, os.lseek(fd, at, os.SEEK_HOLE))
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole is left
                    return
                raise
            while at < end and (chunk := os.pread(fd, min(CHUNK, end - at), at)):
                yield at, chunk
                at += len(chunk)
    finally:
        os.close(fd)
