"""What a sandbox wrote, kept as a layer on top of what it was made of.

An upper directory of an overlay is copied as it is: deleted names stay deleted (a device 0/0 each, or an attribute),
replaced folders stay replaced, renamed ones stay renamed. Owners are shifted back to what the sandbox saw. No recipe
can make a snapshot again, so eviction never takes one; `excise layer rm` does.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError, LayerError
from excise.layers.digest import weigh
from excise.layers.key import key_of
from excise.layers.store import Layer, Store

_MEANING = (b"opaque", b"redirect", b"whiteout", b"protattr")
"""What overlays say of an entry that is true in any overlay; the rest is about the one it was written in."""

_OVERLAYS = (b"trusted.overlay.", b"user.overlay.")
_IDS = 65536


@dataclass(frozen=True, slots=True)
class Owners:
    """The ids that a sandbox's 0 to 65535 have on the host."""

    first: int = 0

    def inside(self, host_id: int, path: bytes) -> int:
        """The id that the sandbox knows it by."""
        if not self.first <= host_id < self.first + _IDS:
            raise LayerError(f"{os.fsdecode(path)!r} belongs to {host_id}, whom no sandbox knows")
        return host_id - self.first


def snapshot_layer(
    store: Store, upper: Path, parents: Sequence[Layer], *, first_id: int = 0
) -> Layer:
    """The upper directory `upper`, which nobody writes to any more, as a layer on `parents`."""
    if not upper.is_dir() or upper.is_symlink():
        raise InputError(f"{upper} is no folder: name the upper directory of an overlay")
    owners = Owners(first_id)
    recipe = {"kind": "snapshot", "digest": weigh(upper).digest, "first_id": first_id}

    def make(tree: Path) -> Mapping[str, object]:
        return {"sockets_left_out": copy(upper, tree, owners)}

    key = key_of(recipe, [parent.id for parent in parents])
    return store.build(key, recipe, make, parents, kept=True)


def copy(source: Path, tree: Path, owners: Owners) -> int:
    """Copy all below `source` into the empty folder `tree`; says how many sockets were left out."""
    top, into = (
        os.fsencode(source) + b"/.",
        os.fsencode(tree),
    )  # the folder, if `source` leads to it
    linked: dict[tuple[int, int], bytes] = {}
    folders = [(top, into, os.lstat(top))]
    skipped = 0
    for folder, _folders, _files in os.walk(top):
        below = into + folder[len(top) :]
        for entry in sorted(os.listdir(folder)):  # noqa: PTH208  (bytes: names need not be text)
            path, target = folder + b"/" + entry, below + b"/" + entry
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                os.mkdir(target)  # noqa: PTH102  (bytes)
                folders.append((path, target, status))
            elif stat.S_ISSOCK(status.st_mode):
                skipped += 1
            elif (twin := linked.get((status.st_dev, status.st_ino))) is not None:
                os.link(twin, target, follow_symlinks=False)
            else:
                _copy_one(path, target, status)
                _describe(path, target, status, owners)
                if status.st_nlink > 1:
                    linked[status.st_dev, status.st_ino] = target
    for path, target, status in reversed(folders):  # last: filling a folder changes its time
        _describe(path, target, status, owners)
    return skipped


def _copy_one(path: bytes, target: bytes, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(path), target)  # noqa: PTH211, PTH115  (bytes)
    elif stat.S_ISREG(status.st_mode):
        shutil.copyfile(path, target, follow_symlinks=False)
    else:
        os.mknod(target, status.st_mode, status.st_rdev)


def _describe(path: bytes, target: bytes, status: os.stat_result, owners: Owners) -> None:
    if not _is_whiteout(status):  # which is the kernel's, and so nobody's in the sandbox
        uid, gid = owners.inside(status.st_uid, path), owners.inside(status.st_gid, path)
        os.chown(target, uid, gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(target, stat.S_IMODE(status.st_mode))  # noqa: PTH101  (bytes)
    for name in map(os.fsencode, os.listxattr(path, follow_symlinks=False)):
        kept = _name_in_layer(name)
        if kept is not None:
            value = os.getxattr(path, name, follow_symlinks=False)
            os.setxattr(target, kept, value, follow_symlinks=False)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _name_in_layer(name: bytes) -> bytes | None:
    """What an attribute is called in the layer, or None for what is not kept."""
    for prefix in _OVERLAYS:
        if name.startswith(prefix):
            meaning = name[len(prefix) :]
            return prefix + meaning if meaning in _MEANING else None
    return (
        name if name.startswith((b"user.", b"security.capability", b"system.posix_acl_")) else None
    )
