"""Other limits for a jail that is there already: what to write into its cgroups, or that it takes another jail. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from excise.jail.control import PERIOD_US, BoxLimits

UNIFIED = "unified"


@dataclass(frozen=True, slots=True)
class Write:
    """One file of the jail's directory in one hierarchy. Some kernels lack those that are `spared`."""

    kind: str
    file: str
    text: str
    spared: bool = False


def writes(was: BoxLimits, now: BoxLimits, kinds: Collection[str]) -> tuple[Write, ...] | None:
    """In their order; None where something differs that was settled when the jail was made."""
    same = replace(now, memory_bytes=0, pids=0, cpu_quota_us=0, cpuset="")
    if same != replace(was, memory_bytes=0, pids=0, cpu_quota_us=0, cpuset=""):
        return None
    found: list[Write] = []
    if now.memory_bytes != was.memory_bytes:
        grows = not now.memory_bytes or 0 < was.memory_bytes < now.memory_bytes
        found += _memory(now.memory_bytes, kinds, grows=grows)
    if now.pids != was.pids:
        found.append(_one("pids", "pids.max", "pids.max", str(now.pids or "max"), kinds))
    if now.cpu_quota_us != was.cpu_quota_us:
        v1, v2 = str(now.cpu_quota_us or -1), f"{now.cpu_quota_us or 'max'} {PERIOD_US}"
        text = v2 if UNIFIED in kinds else v1
        found.append(_one("cpu", "cpu.cfs_quota_us", "cpu.max", text, kinds))
    if now.cpuset != was.cpuset:
        if not (now.cpuset and was.cpuset):  # who is in no such group cannot be bounded by it
            return None
        found.append(_one("cpuset", "cpuset.cpus", "cpuset.cpus", now.cpuset, kinds))
    return tuple(found) if all(write.kind in kinds for write in found) else None


def _memory(number: int, kinds: Collection[str], *, grows: bool) -> list[Write]:
    """What bounds memory and swap together is never below what bounds memory alone."""
    if UNIFIED in kinds:
        return [Write(UNIFIED, "memory.max", str(number or "max"))]
    both = [
        Write("memory", "memory.limit_in_bytes", str(number or -1)),
        Write("memory", "memory.memsw.limit_in_bytes", str(number or -1), spared=True),
    ]
    return both[::-1] if grows else both


def _one(kind: str, v1: str, v2: str, text: str, kinds: Collection[str]) -> Write:
    return Write(UNIFIED, v2, text) if UNIFIED in kinds else Write(kind, v1, text)
