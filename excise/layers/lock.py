"""Holds on files that the kernel lets go of when their holder dies, however it dies: flock, shared or exclusive."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self


class Hold:
    """A lock that is held until it is closed or its process ends. Threads exclude each other like processes."""

    def __init__(self, fd: int, path: Path) -> None:
        self.path = path
        self._fd: int | None = fd

    def close(self) -> None:
        """Let go; a second time does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


def hold(
    path: Path, *, shared: bool = False, wait: bool = True, create: bool = True
) -> Hold | None:
    """The hold, or None where somebody else's is in the way and `wait` is false.

    What is held is the file that stands at `path` now: one that was removed or replaced while we
    waited guards nothing any more, and is asked for anew. FileNotFoundError without `create`.
    """
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    while True:
        fd = os.open(path, flags, 0o600)
        try:
            fcntl.flock(fd, how)
            if _stands_at(fd, path):
                kept, fd = fd, -1
                return Hold(kept, path)
        except BlockingIOError:
            return None
        finally:
            if fd >= 0:
                os.close(fd)


def _stands_at(fd: int, path: Path) -> bool:
    try:
        there = os.stat(path)  # noqa: PTH116  (beside os.fstat)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))
