"""What an image looks like without its newest layer: the layers below as one tree, read without following links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from excise.layers.images.entry import Parts

OPAQUE = b"trusted.overlay.opaque"
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR}


class Below:
    """The trees of layers, top first, as an overlay of them shows them."""

    def __init__(self, trees: Sequence[Path]) -> None:
        self._trees = [os.fsencode(tree) for tree in trees]

    def find(self, parts: Parts) -> bytes | None:
        """Where on disk the thing at `parts` is; None if there is none, or it is hidden."""
        for tree in self._trees:
            path, hides = _in_one(tree, parts)
            if path is not None or hides:
                return path
        return None

    def top_names(self) -> set[bytes]:
        """The names in the root folders of all these layers, hidden ones too."""
        return {name for tree in self._trees for name in os.listdir(tree)}  # noqa: PTH208  (bytes)


def _in_one(tree: bytes, parts: Parts) -> tuple[bytes | None, bool]:
    """Where the thing is in this tree, else whether the tree hides what lower ones have there."""
    path, hides = tree, False
    for depth, part in enumerate(parts, 1):
        path = path + b"/" + part
        status = lstat(path)
        if status is None:
            return None, hides
        if is_whiteout(status):
            return None, True
        if depth == len(parts):
            break
        if not stat.S_ISDIR(status.st_mode):
            return None, True
        hides = hides or is_opaque(path)
    return path, True


def lstat(path: bytes) -> os.stat_result | None:
    """The status of what stands at `path`, if anything does."""
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def is_whiteout(status: os.stat_result) -> bool:
    """Whether it is what an overlay takes for "nothing here"."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(path: bytes) -> bool:
    """Whether an overlay shows nothing of lower layers inside of the folder."""
    try:
        return os.getxattr(path, OPAQUE, follow_symlinks=False) == b"y"
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.ENOTSUP}:
            return False
        raise
