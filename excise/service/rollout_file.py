"""Every rollout's record on disk, a line each, in two files of bounded size: when one is full the older one goes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from excise.types import MIB

NEW, OLD = "rollouts.jsonl", "rollouts.old.jsonl"
MOST_BYTES = 128 * MIB


class RolloutFile:
    """Appends; each line is whole or not there."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most
        self._descriptor: int | None = None
        self._size = 0

    def append(self, line: bytes) -> None:
        """A disk that is full costs records, never a rollout."""
        with contextlib.suppress(OSError):
            if self._descriptor is None:
                self._open()
            if self._size + len(line) > self._most:
                self.close()
                (self._folder / NEW).replace(self._folder / OLD)
                self._open()
            assert self._descriptor is not None
            written = os.write(self._descriptor, line)
            self._size += written
            if written != len(line):
                os.ftruncate(self._descriptor, self._size - written)
                self._size -= written

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._folder / NEW, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        torn = _after_last_line(self._folder / NEW)
        if torn:
            self._size -= torn
            os.ftruncate(self._descriptor, self._size)


def lines(folder: Path) -> Iterator[bytes]:
    """All that is kept, oldest first, without an unfinished end."""
    for name in (OLD, NEW):
        with contextlib.suppress(FileNotFoundError), (folder / name).open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line


def _after_last_line(path: Path) -> int:
    """Bytes behind the last line end: what a kill left of a write."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        step = min(size, 4 * MIB)
        file.seek(size - step)
        tail = file.read(step)
    return len(tail) - (tail.rfind(b"\n") + 1)
