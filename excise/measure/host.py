"""The host's facts: what a measurement must be read with, and what makes two hosts unlike."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

Facts = dict[str, str | int | float | None]

LIKE = ("cpu", "cores", "kernel", "virtualisation", "clock_source", "cgroup", "storage", "python")
"""Facts that must be the same for two studies' times to stand in one figure."""

MEMORY_TOLERANCE = 0.05


def facts(storage_of: Path) -> Facts:
    """What this host is; None where it does not say."""
    from excise import __version__

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "system": _os_release(),
        "virtualisation": _virtualisation(),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cgroup": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "storage": _file_system(storage_of),
        "python": platform.python_version(),
        "python_build": " ".join(platform.python_build()),
        "python_compiler": platform.python_compiler(),
        "git": _version_of("git"),
        "bash": _version_of("bash"),
        "excise": __version__,
    }


def unlike(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[str, ...]:
    """What sets two hosts apart, as `fact: one != other`; empty when their times may be mixed."""
    apart = [f"{key}: {a.get(key)} != {b.get(key)}" for key in LIKE if a.get(key) != b.get(key)]
    one, other = a.get("memory_bytes"), b.get("memory_bytes")
    if isinstance(one, int | float) and isinstance(other, int | float):
        if abs(one - other) > MEMORY_TOLERANCE * max(one, other):
            apart.append(f"memory_bytes: {one} != {other}")
    elif one != other:
        apart.append(f"memory_bytes: {one} != {other}")
    return tuple(apart)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _cpu_model() -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "Processor"}:
            return value.strip()
    return platform.processor() or None


def _os_release() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _virtualisation() -> str | None:
    program = shutil.which("systemd-detect-virt")
    if program:
        said = subprocess.run([program], capture_output=True, text=True, check=False).stdout.strip()
        if said:
            return said
    if " hypervisor" in (_read("/proc/cpuinfo") or ""):
        return _read("/sys/class/dmi/id/sys_vendor") or "hypervisor"
    return "none"


def _file_system(path: Path) -> str | None:
    """The type of the file system that holds `path`: the longest mount point above it."""
    real = str(path.resolve())
    best, kind = "", None
    for line in (_read("/proc/self/mounts") or "").splitlines():
        _, point, fs, *_ = line.split(" ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fs
    return kind


def _version_of(program: str) -> str | None:
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.splitlines()[0] if said.stdout else None


def interpreter(python: str) -> str:
    """What identifies an interpreter and thus its byte code and its speed: version and build."""
    if python == sys.executable:
        return f"{platform.python_version()} {' '.join(platform.python_build())}"
    script = "import platform as p; print(p.python_version(), *p.python_build())"
    return subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()
