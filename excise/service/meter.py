"""What is left of this host: memory, disk and cores, looked at a few times a second at most."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

LOOKS_EVERY_NS = 250_000_000


class Meter:
    """`Meter(folder, now_ns)`: disk is that of `folder`."""

    def __init__(self, folder: Path, now_ns: Callable[[], int]) -> None:
        self._folder = folder
        self._now_ns = now_ns
        self._looked_ns = -LOOKS_EVERY_NS
        self._found: tuple[int | None, int | None, float | None] = (None, None, None)

    def read(self) -> tuple[int | None, int | None, float | None]:
        """Free memory and free disk in bytes, and load per core; None where this host cannot tell."""
        now_ns = self._now_ns()
        if now_ns - self._looked_ns >= LOOKS_EVERY_NS:
            self._looked_ns = now_ns
            self._found = (_free_memory(), self._free_disk(), _load())
        return self._found

    def _free_disk(self) -> int | None:
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return None
        return found.f_bavail * found.f_frsize


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo", "rb") as file:  # noqa: PTH123  # read often
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _load() -> float | None:
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None
