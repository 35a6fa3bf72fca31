"""What else the machine was doing: read before and after a trial, and waited out before it.

Everything is read from /proc and getrusage; a fact that this kernel does not offer is None, never 0.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from excise.clock import Clock
from excise.measure.record import Noise

QUIET_PSI = 30.0
"""Percent of time in which something waited for a CPU, over the last ten seconds, from which on we wait."""

POLL_S = 0.1
EBB_LOOK_S = 0.05
TELLING_S = 0.2
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine's counters at one moment."""

    jiffies: tuple[int, ...] | None
    psi_us: dict[str, int | None]
    cpu_s: float
    served_s: float
    """CPU seconds of children that live on, such as the git server, and of what they reaped."""
    at_s: float
    context_switches: int
    major_faults: int
    available_bytes: int | None

    @classmethod
    def take(cls) -> Reading:
        mine = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        both = (mine, children)
        return cls(
            jiffies=_jiffies(),
            psi_us={kind: _psi_total(kind) for kind in ("cpu", "io", "memory")},
            cpu_s=sum(u.ru_utime + u.ru_stime for u in both),
            served_s=sum(_ticks(pid) for pid in _living_children()) / TICKS_PER_S,
            at_s=time.monotonic(),
            context_switches=sum(u.ru_nvcsw + u.ru_nivcsw for u in both),
            major_faults=sum(u.ru_majflt for u in both),
            available_bytes=_available_bytes(),
        )


def between(
    before: Reading, after: Reading, *, waited_s: float = 0.0, all_ours: bool = False
) -> Noise:
    """The noise of what lay between two readings. `all_ours`: no daemon worked for the sandbox in that time."""
    steal, busy, host_cpu_s = _shares(before.jiffies, after.jiffies)
    ours_s = after.cpu_s - before.cpu_s + max(0.0, after.served_s - before.served_s)
    span_s = after.at_s - before.at_s
    return Noise(
        steal_share=steal,
        busy_share=busy,
        load1=os.getloadavg()[0],
        runnable=_runnable(),
        psi_cpu_us=_difference(before.psi_us["cpu"], after.psi_us["cpu"]),
        psi_io_us=_difference(before.psi_us["io"], after.psi_us["io"]),
        psi_memory_us=_difference(before.psi_us["memory"], after.psi_us["memory"]),
        cpu_s=round(after.cpu_s - before.cpu_s, 6),
        host_cpu_s=host_cpu_s,
        other_share=_other(host_cpu_s, ours_s, span_s) if all_ours else None,
        span_s=round(span_s, 6),
        context_switches=after.context_switches - before.context_switches,
        major_faults=after.major_faults - before.major_faults,
        available_before_bytes=before.available_bytes,
        available_bytes=after.available_bytes,
        waited_s=round(waited_s, 3),
    )


def _other(host_cpu_s: float | None, ours_s: float, span_s: float) -> float | None:
    """A host counts in ticks of 10 ms, so that nothing can be said of less than a few."""
    if host_cpu_s is None or span_s < TELLING_S:
        return None
    cores = os.cpu_count() or 1
    return round(min(1.0, max(0.0, host_cpu_s - ours_s) / (cores * span_s)), 4)


async def wait_until_quiet(clock: Clock, at_most_s: float, *, limit: float = QUIET_PSI) -> float:
    """Wait while others press on the CPUs, but not for ever; returns the seconds waited."""
    began = clock.now_ns()
    while (pressure := cpu_pressure()) is not None and pressure > limit:
        waited = (clock.now_ns() - began) / 1e9
        if waited >= at_most_s:
            break
        await clock.sleep(min(POLL_S, at_most_s - waited))
    return (clock.now_ns() - began) / 1e9


def cpu_pressure() -> float | None:
    """PSI `some avg10` of the CPUs in percent; None where the kernel has none."""
    line = _first_line("/proc/pressure/cpu")
    return None if line is None else float(line.split("avg10=")[1].split()[0])


def _psi_total(kind: str) -> int | None:
    line = _first_line(f"/proc/pressure/{kind}")
    return None if line is None else int(line.split("total=")[1])


def _jiffies() -> tuple[int, ...] | None:
    """User nice system idle iowait irq softirq steal of all CPUs together."""
    line = _first_line("/proc/stat")
    return None if line is None else tuple(int(w) for w in line.split()[1:9])


def _shares(
    before: tuple[int, ...] | None, after: tuple[int, ...] | None
) -> tuple[float | None, float | None, float | None]:
    """Share of core time that was stolen and that was used, and the CPU seconds used."""
    if before is None or after is None:
        return None, None, None
    user, nice, system, idle, iowait, irq, softirq, steal = (
        b - a for a, b in zip(before, after, strict=True)
    )
    used = user + nice + system + irq + softirq
    total = used + idle + iowait + steal
    host_cpu_s = used / TICKS_PER_S
    if total <= 0:
        return None, None, host_cpu_s
    return round(steal / total, 5), round((used + steal) / total, 4), host_cpu_s


def _living_children() -> list[int]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        line = _first_line(str(task / "children"))
        found += [int(pid) for pid in (line or "").split()]
    return found


def _ticks(pid: int) -> int:
    """User and system time of a process and of its reaped children; 0 if it has just gone."""
    line = _first_line(f"/proc/{pid}/stat")
    return sum(int(w) for w in line.rpartition(")")[2].split()[11:15]) if line else 0


class Ebb:
    """`async with Ebb() as ebb`: the least memory that new work could have had meanwhile."""

    def __init__(self) -> None:
        self.lowest_bytes = _available_bytes()
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while self.lowest_bytes is not None:
            await asyncio.sleep(EBB_LOOK_S)
            self.lowest_bytes = min(self.lowest_bytes, _available_bytes() or self.lowest_bytes)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _runnable() -> int | None:
    """The fourth word of /proc/loadavg is `running/all`; the one that reads it is running."""
    line = _first_line("/proc/loadavg")
    return None if line is None else max(0, int(line.split()[3].partition("/")[0]) - 1)


def _available_bytes() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _first_line(path: str) -> str | None:
    try:
        with Path(path).open(encoding="ascii") as file:
            return file.readline()
    except OSError:
        return None
