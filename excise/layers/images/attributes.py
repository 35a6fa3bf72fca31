"""Owner, mode, times and extended attributes: set in the one order in which none of them undoes another."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

from excise.errors import ImageError
from excise.layers.images.entry import Entry, shown

FORGED = (b"trusted.overlay.", b"user.overlay.")
"""What an overlay obeys: an image that brings it along could show itself files of other layers."""

_KEPT = (b"user.", b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default")


def kept(entry: Entry) -> tuple[dict[bytes, bytes], int]:
    """The extended attributes that mean the same on every host, and how many others there are."""
    for name in entry.xattrs:
        if name.startswith(FORGED) or b"\0" in name:
            raise ImageError(f"the layer has {shown(entry.path)} with the attribute {shown(name)}")
    chosen = {name: value for name, value in entry.xattrs.items() if _is_kept(name)}
    return chosen, len(entry.xattrs) - len(chosen)


def gives_owners(uid: int, gid: int) -> bool:
    """Whether files are given their owner. Who is not root has files of his own: in his sandboxes they are root's."""
    if os.geteuid() == 0:
        return True
    if uid or gid:
        raise ImageError(f"the layer has files of the owner {uid}:{gid}, which only root can make")
    return False


def dress(fd: int, entry: Entry, xattrs: Mapping[bytes, bytes]) -> int:
    """Give the open file or folder its attributes; says how many this file system cannot hold.

    A new owner clears set-user-id bits and capabilities, so it comes first; times come last.
    """
    if gives_owners(entry.uid, entry.gid):
        os.fchown(fd, entry.uid, entry.gid)
    os.fchmod(fd, entry.mode)
    refused = sum(not _holds(fd, name, value) for name, value in xattrs.items())
    os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))
    return refused


def dress_unopened(name: bytes, folder: int, entry: Entry) -> None:
    """The same for what cannot be opened: a symbolic link, a fifo. It has just been made by us."""
    if gives_owners(entry.uid, entry.gid):
        os.chown(name, entry.uid, entry.gid, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.chmod(name, entry.mode, dir_fd=folder)
    times = (entry.mtime_ns, entry.mtime_ns)
    os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)


def copy_folder(source: bytes | None, fd: int) -> int:
    """Make a folder that the layer only implies look like the one below it; returns its time of change."""
    if source is None:
        if gives_owners(0, 0):
            os.fchown(fd, 0, 0)
        os.fchmod(fd, 0o755)
        return 0
    status = os.lstat(source)
    if os.geteuid() == 0:
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    for name in map(os.fsencode, os.listxattr(source, follow_symlinks=False)):
        if _is_kept(name):
            os.setxattr(fd, name, os.getxattr(source, name, follow_symlinks=False))
    return status.st_mtime_ns


def _is_kept(name: bytes) -> bool:
    if name.startswith(FORGED):
        return False
    return name.startswith(_KEPT[0]) or name in _KEPT[1:]


def _holds(fd: int, name: bytes, value: bytes) -> bool:
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return False
        raise
    return True
