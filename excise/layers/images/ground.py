"""Where paths of an image lead while a layer of it is being unpacked, and what of the layers below it hides."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from excise.errors import ImageError
from excise.layers.images import attributes
from excise.layers.images.below import OPAQUE, Below, lstat
from excise.layers.images.entry import LONGEST_PATH, Parts, shown

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40


class Ground:
    """One layer's tree over those below it. Nothing in it is ever reached through a symbolic link."""

    def __init__(self, tree: bytes, below: Below) -> None:
        self.implied: dict[Parts, int] = {}
        """Folders that only paths spoke of, and the times they shall have."""
        self._tree = tree
        self._below = below
        self._whiteouts: dict[Parts, None] = {}
        self._opaque: dict[Parts, None] = {}
        self._last: tuple[Parts, int] | None = None

    def close(self) -> None:
        """Let go of the folder that was used last."""
        self.forget()

    def on_disk(self, parts: Parts) -> bytes:
        """Where a settled path is in this layer's tree."""
        return b"/".join((self._tree, *parts))

    def settle(self, parts: Parts) -> Parts:
        """The folder that `parts` leads to with the image as root, links followed; it need not be there yet."""
        if self._last is not None and self._last[0] == parts:
            return parts
        ahead, links = list(reversed(parts)), 0
        at: list[bytes] = []
        while ahead:
            part = ahead.pop()
            if part == b"..":
                del at[-1:]
                continue
            path = self._find((*at, part))
            mode = stat.S_IFDIR if path is None else os.lstat(path).st_mode
            if path is not None and stat.S_ISLNK(mode):
                links += 1
                target = os.readlink(path)  # noqa: PTH115  (bytes)
                at = [] if target.startswith(b"/") else at
                ahead += [p for p in reversed(target.split(b"/")) if p not in (b"", b".")]
            elif path is None or stat.S_ISDIR(mode) or not path.startswith(self._tree + b"/"):
                at.append(part)
            else:
                whole = shown(b"/".join(parts))
                raise ImageError(f"the layer has something in {whole}, part of which is a file")
            if links > _MOST_LINKS or sum(map(len, at)) + len(at) > LONGEST_PATH:
                raise ImageError(f"the layer has {shown(b'/'.join(parts))}, which leads nowhere")
        return tuple(at)

    def open_folder(self, parts: Parts) -> int:
        """A settled folder, made if need be. The descriptor is good until another folder is asked for."""
        if self._last is not None and self._last[0] == parts:
            return self._last[1]
        fd = os.open(self._tree, _FOLDER)
        for depth in range(1, len(parts) + 1):
            above = fd
            try:
                fd = self._step(above, parts[:depth])
            finally:
                os.close(above)
        self.forget()
        self._last = (parts, fd)
        return fd

    @contextlib.contextmanager
    def opened(self, parts: Parts) -> Iterator[int]:
        """The same for a while of its own."""
        if parts:
            fd = self._step(self.open_folder(parts[:-1]), parts)
        else:
            fd = os.open(self._tree, _FOLDER)
        try:
            yield fd
        finally:
            os.close(fd)

    def forget(self) -> None:
        """Folders may have been removed: let go of the one that was used last."""
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def imply_root(self) -> int:
        """Make the root look like the one below, for a layer that does not speak of it; returns its time."""
        with self.opened(()) as fd:
            return attributes.copy_folder(self._below.find(()), fd)

    def hide(self, parts: Parts, *, all_below: bool) -> None:
        """Remember what the layer hides."""
        if all_below:
            self._opaque[self.settle(parts)] = None
        else:
            self._whiteouts[(*self.settle(parts[:-1]), parts[-1])] = None

    def is_folder(self, parts: Parts) -> bool:
        """Whether it is a folder of this layer still: any part of its path may have been replaced since."""
        for depth in range(1, len(parts) + 1):
            status = lstat(self.on_disk(parts[:depth]))
            if status is None or not stat.S_ISDIR(status.st_mode):
                return False
        return True

    def write_hidden(self) -> int:
        """Write what is hidden, where there is something to hide; returns how many marks that took.

        An overlay merges its layers' root folders whatever is written on them: a root that hides all
        below is one whiteout for each name there.
        """
        if () in self._opaque:
            del self._opaque[()]
            self._whiteouts |= {(name,): None for name in self._below.top_names()}
        inside = [parts for parts in self._opaque if parts not in self._whiteouts]
        marks = sum(map(self._hide_inside, inside))
        return marks + sum(self._hide_all(parts) for parts in self._whiteouts)

    def _hide_inside(self, parts: Parts) -> bool:
        source = self._below.find(parts)
        if source is None or not stat.S_ISDIR(os.lstat(source).st_mode) or self._covered(parts):
            return False
        mine = lstat(self.on_disk(parts))
        if mine is not None and not stat.S_ISDIR(mine.st_mode):
            return False
        with self.opened(parts) as fd:
            os.setxattr(fd, OPAQUE, b"y")
        return True

    def _hide_all(self, parts: Parts) -> bool:
        if self._below.find(parts) is None or self._covered(parts):
            return False
        if lstat(self.on_disk(parts)) is not None:  # the layer has its own there
            return self._hide_inside(parts)
        os.mknod(parts[-1], stat.S_IFCHR, os.makedev(0, 0), dir_fd=self.open_folder(parts[:-1]))
        return True

    def _covered(self, parts: Parts) -> bool:
        """Whether what layers below have there is hidden by this layer further up already."""
        for above in (parts[:depth] for depth in range(1, len(parts))):
            mine = lstat(self.on_disk(above))
            file = mine is not None and not stat.S_ISDIR(mine.st_mode)
            if file or above in self._opaque or above in self._whiteouts:
                return True
        return False

    def _step(self, above: int, parts: Parts) -> int:
        """One folder further, never through a link."""
        try:
            return os.open(parts[-1], _FOLDER, dir_fd=above)
        except FileNotFoundError:
            os.mkdir(parts[-1], 0o700, dir_fd=above)
        fd = os.open(parts[-1], _FOLDER, dir_fd=above)
        try:
            self.implied[parts] = attributes.copy_folder(self._implied_by(parts), fd)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _implied_by(self, parts: Parts) -> bytes | None:
        source = None if self._hidden(parts) else self._below.find(parts)
        return source if source and stat.S_ISDIR(os.lstat(source).st_mode) else None

    def _find(self, here: Parts) -> bytes | None:
        """What stands there, in this layer or in one below."""
        mine = self.on_disk(here)
        if lstat(mine) is not None:
            return mine
        return None if self._hidden(here) else self._below.find(here)

    def _hidden(self, here: Parts) -> bool:
        """Whether this layer hides what layers below have there."""
        if not self._whiteouts and not self._opaque:
            return False
        above = [here[:depth] for depth in range(len(here))]
        return here in self._whiteouts or any(
            folder in self._opaque or folder in self._whiteouts for folder in above
        )
