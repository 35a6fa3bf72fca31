"""Entries to one read-only lower of an overlay, on a disk of our own, with names that somebody hostile chose.

Every path is resolved inside the image: a symbolic link, in this layer or in one below, leads where it would
lead with the image as root. What the layer hides is written last, and only where there is something to hide:
a whiteout that hides nothing would show up as a broken file.

Device nodes are left out and counted. Sandboxes have their own /dev and mount these trees without devices;
on the host's disk a node of the image's choice would be a way to the host's disks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from excise.errors import ImageError
from excise.layers.images import attributes
from excise.layers.images.below import Below, lstat
from excise.layers.images.entry import (
    Entry,
    Kind,
    Parts,
    hidden_by,
    is_bookkeeping,
    parts_of,
    shown,
)
from excise.layers.images.ground import Ground
from excise.layers.place import remove_tree

MOST_ENTRIES = 5_000_000
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_TARGET = 4095
_IDS_IN_A_SANDBOX = 65536


@dataclass(slots=True)
class Facts:
    """What there is to know of a layer that its tree does not show."""

    entries: int = 0
    bytes_of_files: int = 0
    whiteouts: int = 0
    devices_left_out: int = 0
    xattrs_left_out: int = 0
    owners_beyond_65535: int = 0


def unpack(
    entries: Iterable[Entry], tree: Path, below: Below, *, literal: bool = False
) -> dict[str, object]:
    """Fill the empty folder `tree` with a layer's entries, whiteouts among them; returns its facts.

    With `literal` no name means a whiteout.
    """
    with Unpacking(tree, below) as layer:
        for entry in entries:
            parts = parts_of(entry.path)
            if not literal and is_bookkeeping(parts):
                continue
            hides = None if literal else hidden_by(parts)
            if hides is None:
                layer.add(parts, entry)
            else:
                layer.hide(hides.parts, all_below=hides.all_below)
        return layer.finish()


class Unpacking:
    """One layer on its way to disk."""

    def __init__(self, tree: Path, below: Below) -> None:
        self._ground = Ground(os.fsencode(tree), below)
        self._below = below
        self._facts = Facts()
        self._times: dict[Parts, int] = {}
        self._has_root = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ground.close()

    def add(self, parts: Parts, entry: Entry) -> None:
        """Put one entry at its place; what this layer had there before is gone, unless both are folders."""
        self._count()
        if max(entry.uid, entry.gid) >= _IDS_IN_A_SANDBOX:
            self._facts.owners_beyond_65535 += 1
        try:
            self._put(parts, entry)
        except OSError as error:
            raise ImageError(
                f"the layer has {shown(entry.path)}, which cannot be made here: {error.strerror}"
            ) from error

    def hide(self, parts: Parts, *, all_below: bool) -> None:
        """Note what the layer hides; it is no matter whether it stands before or after what it has itself."""
        self._count()
        self._ground.hide(parts, all_below=all_below)

    def finish(self) -> dict[str, object]:
        """Write what is hidden and the folders' times, which every file in them has changed."""
        if not self._has_root:
            self._times[()] = self._ground.imply_root()
        self._facts.whiteouts = self._ground.write_hidden()
        for parts, mtime_ns in (self._ground.implied | self._times).items():
            if self._ground.is_folder(parts):
                times = (mtime_ns, mtime_ns)
                os.utime(self._ground.on_disk(parts), ns=times, follow_symlinks=False)
        return asdict(self._facts)

    def _count(self) -> None:
        self._facts.entries += 1
        if self._facts.entries > MOST_ENTRIES:
            raise ImageError(f"the layer has more than {MOST_ENTRIES} entries")

    def _put(self, parts: Parts, entry: Entry) -> None:
        xattrs, left_out = attributes.kept(entry)
        self._facts.xattrs_left_out += left_out
        if not parts:
            self._root(entry, xattrs)
            return
        linked = self._linked(entry) if entry.kind is Kind.HARDLINK else None
        folder = self._ground.settle(parts[:-1])
        here = (*folder, parts[-1])
        if linked == here:
            raise ImageError(f"the layer has {shown(entry.path)}, a link to itself")
        if not self._make_room(here, entry):
            return
        name, parent = parts[-1], self._ground.open_folder(folder)
        match entry.kind:
            case Kind.FILE:
                self._file(name, parent, entry, xattrs)
            case Kind.FOLDER:
                self._folder(here, name, parent, entry, xattrs)
            case Kind.SYMLINK:
                os.symlink(_target(entry), name, dir_fd=parent)
                attributes.dress_unopened(name, parent, entry)
                self._facts.xattrs_left_out += len(xattrs)
            case Kind.HARDLINK if linked is not None:
                source = self._ground.on_disk(linked)
                os.link(source, name, dst_dir_fd=parent, follow_symlinks=False)
            case Kind.FIFO:
                os.mkfifo(name, 0o600, dir_fd=parent)
                attributes.dress_unopened(name, parent, entry)
            case _:
                self._facts.devices_left_out += 1
                self._ground.hide(here, all_below=False)

    def _make_room(self, here: Parts, entry: Entry) -> bool:
        """Remove what stands there; false if the entry is a folder that is there already, and is dressed anew."""
        path = self._ground.on_disk(here)
        status = lstat(path)
        if status is None:
            return True
        if stat.S_ISDIR(status.st_mode):
            if entry.kind is Kind.FOLDER:
                with self._ground.opened(here) as fd:
                    self._dress(fd, here, entry, attributes.kept(entry)[0])
                return False
            remove_tree(Path(os.fsdecode(path)))
            self._ground.forget()
        else:
            os.unlink(path)  # noqa: PTH108  (bytes)
        return True

    def _root(self, entry: Entry, xattrs: dict[bytes, bytes]) -> None:
        if entry.kind is not Kind.FOLDER:
            raise ImageError("the layer's root is no folder")
        self._has_root = True
        with self._ground.opened(()) as fd:
            self._dress(fd, (), entry, xattrs)

    def _folder(
        self, here: Parts, name: bytes, parent: int, entry: Entry, xattrs: dict[bytes, bytes]
    ) -> None:
        os.mkdir(name, 0o700, dir_fd=parent)
        with self._ground.opened(here) as fd:
            self._dress(fd, here, entry, xattrs)

    def _dress(self, fd: int, here: Parts, entry: Entry, xattrs: dict[bytes, bytes]) -> None:
        self._facts.xattrs_left_out += attributes.dress(fd, entry, xattrs)
        self._times[here] = entry.mtime_ns

    def _file(self, name: bytes, parent: int, entry: Entry, xattrs: dict[bytes, bytes]) -> None:
        fd = os.open(name, _NEW, 0o600, dir_fd=parent)
        try:
            end = 0
            for start, chunk in entry.data:
                if start != end:
                    os.lseek(fd, start, os.SEEK_SET)
                _write(fd, chunk)
                end = start + len(chunk)
                self._facts.bytes_of_files += len(chunk)
            if end != entry.size:
                os.ftruncate(fd, entry.size)
            self._facts.xattrs_left_out += attributes.dress(fd, entry, xattrs)
        finally:
            os.close(fd)

    def _linked(self, entry: Entry) -> Parts:
        """Where the target of a hard link stands: a file of this layer, for a link cannot reach another."""
        parts = parts_of(entry.target)
        if not parts:
            raise ImageError(f"the layer has {shown(entry.path)}, a hard link to nothing")
        here = (*self._ground.settle(parts[:-1]), parts[-1])
        status = lstat(self._ground.on_disk(here))
        if status is None or stat.S_ISDIR(status.st_mode):
            raise ImageError(
                f"the layer has {shown(entry.path)}, a hard link to {shown(entry.target)}, "
                "which is no file of the same layer before it"
            )
        return here


def _target(entry: Entry) -> bytes:
    if not entry.target or b"\0" in entry.target or len(entry.target) > _LONGEST_TARGET:
        raise ImageError(f"the layer has {shown(entry.path)}, a symbolic link to nowhere")
    return entry.target


def _write(fd: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(fd, rest) :]
