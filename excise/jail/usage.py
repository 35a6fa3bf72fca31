"""One jail's cgroups, seen from the host: what it used, whether it ran out of memory, and holding it still."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from excise.errors import Phase
from excise.jail.cgroups import Place
from excise.jail.control import BoxLimits
from excise.jail.phase import failed
from excise.jail.relimit import writes

_POLL_S = 0.0005
_BOUNDS = (
    ("memory", "memory", "memory.limit_in_bytes", "memory.max"),
    ("processes", "pids", "pids.max", "pids.max"),
    ("cpu", "cpu", "cpu.cfs_quota_us", "cpu.max"),
    ("cpuset", "cpuset", "cpuset.cpus", "cpuset.cpus"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The cgroups of one jail by controller; without the one that counts, the answer is None."""

    folders: dict[str, Path]

    @classmethod
    def of(cls, places: Iterable[Place], kit: int) -> Usage:
        return cls({place.kind: place.path / f"box-{kit}" for place in places})

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel has killed for want of memory."""
        return self._keyed("memory", "memory.oom_control", "memory.events", "oom_kill")

    def cpu_ns(self) -> int | None:
        """CPU time of all its processes, the dead ones too; only version 2 counts it where it limits it."""
        used = self._keyed("", "", "cpu.stat", "usage_usec")
        return None if used is None else used * 1000

    def throttled(self) -> int | None:
        """In how many periods it had used up its share of the CPU."""
        return self._keyed("cpu", "cpu.stat", "cpu.stat", "nr_throttled")

    def peak_bytes(self) -> int | None:
        """The most memory it ever used, files in its own tree included: those live in memory."""
        return self._number("memory", "memory.max_usage_in_bytes", "memory.peak")

    def memory_bytes(self) -> int | None:
        return self._number("memory", "memory.usage_in_bytes", "memory.current")

    def processes(self) -> int | None:
        return self._number("pids", "pids.current", "pids.current")

    def limit(self, was: BoxLimits, now: BoxLimits) -> bool:
        """Bound it otherwise from now on; False where only another jail can be bounded so."""
        planned = writes(was, now, self.folders)
        if planned is None:
            return False
        for write in planned:
            try:
                (self.folders[write.kind] / write.file).write_text(write.text)
            except FileNotFoundError:
                if not write.spared:
                    return False
            except OSError:
                return False
        return True

    def limits(self) -> tuple[str, ...]:
        """What bounds it, as the kernel has it."""
        found = ((name, self._file(kind, v1, v2)) for name, kind, v1, v2 in _BOUNDS)
        return tuple(f"{name} {text.strip()}" for name, file in found if (text := _read(file)))

    def freeze(self, timeout_s: float = 5.0) -> None:
        """Hold every process still, whatever it does; returns when all are."""
        self._set_frozen(frozen=True, timeout_s=timeout_s)

    def thaw(self, timeout_s: float = 5.0) -> None:
        """Let them go on."""
        self._set_frozen(frozen=False, timeout_s=timeout_s)

    def _set_frozen(self, *, frozen: bool, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        order, state, wanted = self._freezer(frozen=frozen)
        try:
            order[0].write_text(order[1])
            while wanted not in state.read_text():
                if time.monotonic() > deadline:
                    raise failed("its processes do not stand still", Phase.RUN, retryable=True)
                with contextlib.suppress(OSError):
                    order[0].write_text(order[1])  # version 1 needs to be told again after forks
                time.sleep(_POLL_S)
        except OSError as error:
            raise failed(f"cannot pause it: {error.strerror}", Phase.RUN) from error

    def _freezer(self, *, frozen: bool) -> tuple[tuple[Path, str], Path, str]:
        if "unified" in self.folders:
            folder = self.folders["unified"]
            return (
                (folder / "cgroup.freeze", str(int(frozen))),
                folder / "cgroup.events",
                f"frozen {int(frozen)}",
            )
        if "freezer" not in self.folders:
            raise failed("cannot pause it: this host has no freezer for us", Phase.RUN)
        state = self.folders["freezer"] / "freezer.state"
        word = "FROZEN" if frozen else "THAWED"
        return (state, word), state, word

    def _file(self, kind: str, v1: str, v2: str) -> Path | None:
        if "unified" in self.folders:
            return self.folders["unified"] / v2
        return self.folders[kind] / v1 if kind in self.folders else None

    def _number(self, kind: str, v1: str, v2: str) -> int | None:
        text = _read(self._file(kind, v1, v2))
        return int(text) if text is not None else None

    def _keyed(self, kind: str, v1: str, v2: str, key: str) -> int | None:
        text = _read(self._file(kind, v1, v2))
        pairs = (line.split() for line in (text or "").splitlines())
        return next((int(pair[1]) for pair in pairs if pair[0] == key), None)


def _read(file: Path | None) -> str | None:
    try:
        return file.read_text() if file is not None else None
    except OSError:
        return None
