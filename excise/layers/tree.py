"""What stands where in a root file system, read from the host's disk without following it astray."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError

MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Member:
    """One entry: a folder, a symbolic link to `target`, a file of the host, or a file that is `data`."""

    path: str
    mode: int
    target: str | None = None
    source: Path | None = None
    data: bytes | None = None
    size: int = 0
    mtime_s: int = 0
    inode: tuple[int, int] | None = None

    @property
    def is_folder(self) -> bool:
        return self.target is None and self.source is None and self.data is None

    def identity(self) -> tuple[object, ...]:
        """Changes whenever the entry might have changed; cheap, because no content is read."""
        return (self.path, self.mode, self.target, self.data, self.size, self.mtime_s)


def member_at(source: Path, path: str, *, mtime_s: int | None = None) -> Member | None:
    """The entry at `source`, to stand at `path`; None for sockets, devices and the like."""
    status = source.lstat()
    when = int(status.st_mtime) if mtime_s is None else mtime_s
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Member(path, 0o777, target=str(source.readlink()), mtime_s=when)
    if stat.S_ISDIR(status.st_mode):
        return Member(path, mode)
    if stat.S_ISREG(status.st_mode):
        inode = (status.st_dev, status.st_ino) if status.st_nlink > 1 else None
        return Member(path, mode, source=source, size=status.st_size, mtime_s=when, inode=inode)
    return None


def trace(path: Path) -> Iterator[Member]:
    """Every symbolic link on the way to an absolute `path`, then what stands at the end of it."""
    ahead = list(path.parts[1:])
    at, links = Path("/"), 0
    while ahead:
        part = ahead.pop(0)
        if part == "..":
            at = at.parent
            continue
        here = at / part
        if not here.is_symlink():
            at = here
            continue
        links += 1
        if links > MOST_LINKS:
            raise InputError(f"{path} is a loop of symbolic links: repair it, then try again")
        link = member_at(here, inside(here))
        if link is not None:
            yield link
        target = here.readlink()
        ahead = [*(target.parts[1:] if target.is_absolute() else target.parts), *ahead]
        at = Path("/") if target.is_absolute() else at
    end = member_at(at, inside(at))
    if end is not None:
        yield end


def walk(
    top: Path,
    at: str | None = None,
    *,
    mtime_s: int | None = None,
    skip: Callable[[str], bool] = lambda _name: False,
) -> Iterator[Member]:
    """All below `top`, to stand below `at` (else at the same place). Links are kept, never followed."""
    base = inside(top) if at is None else at
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not skip(name)]
        below = Path(folder).relative_to(top).as_posix()
        prefix = base if below == "." else f"{base}/{below}"
        own = member_at(Path(folder), prefix, mtime_s=mtime_s)
        if own is not None:
            yield own
        links = (name for name in folders if Path(folder, name).is_symlink())
        for name in (*links, *files):
            entry = member_at(Path(folder, name), f"{prefix}/{name}", mtime_s=mtime_s)
            if entry is not None:
                yield entry


def inside(path: Path) -> str:
    """An absolute path as it is named inside an archive."""
    return path.as_posix().lstrip("/")
