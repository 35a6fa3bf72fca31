"""What guest to make, decided from a spec and the options; nothing is started here."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, fields

from excise.errors import InputError
from excise.types import GIB, MIB, Egress, Spec

NAMES = {"qemu": "vm", "uml": "vm-uml"}
"""What a machine is called in errors and tables."""

_CHOICES = {
    "machine": tuple(NAMES),
    "accel": ("auto", "kvm", "tcg"),
    "start": ("boot", "fork"),
}

LEAST_MEMORY_BYTES = 64 * MIB
UNLIMITED_MEMORY_BYTES = 4 * GIB
UNLIMITED_DISK_BYTES = 64 * GIB
"""A guest has so much and no more: where no limit is asked for, this one holds. Neither is taken before it is used."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may be chosen about a guest, apart from its spec."""

    machine: str = "qemu"
    parts: str | None = None
    accel: str = "auto"
    start: str = "boot"
    boot_s: float = 60.0
    """How long a guest may take to boot before it counts as broken."""

    @property
    def name(self) -> str:
        return f"{NAMES[self.machine]}+fork" if self.start == "fork" else NAMES[self.machine]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        known = tuple(each.name for each in fields(cls))
        if unknown := sorted(set(given) - set(known)):
            raise InputError(f"vm has no option {', '.join(unknown)}; it has: {', '.join(known)}")
        for option, allowed in _CHOICES.items():
            if given.get(option, allowed[0]) not in allowed:
                raise InputError(f"vm: {option}={given[option]} is not one of {', '.join(allowed)}")
        machine = given.get("machine", "qemu")
        if machine == "uml" and set(given) & {"accel", "start"}:
            raise InputError("vm-uml has no option accel and no option start: those are QEMU's")
        boot = given.get("boot_s", "60")
        try:
            boot_s = float(boot)
        except ValueError:
            boot_s = math.nan
        if not 0 < boot_s < math.inf:
            raise InputError(f"vm: boot_s={boot} is not a number of seconds")
        return cls(
            machine=machine,
            parts=given.get("parts"),
            accel=given.get("accel", "auto"),
            start=given.get("start", "boot"),
            boot_s=boot_s,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """The hardware of one guest."""

    memory_mib: int
    processors: int
    disk_bytes: int
    pids: int | None
    cpuset: tuple[int, ...] | None
    network: bool


def shape_of(spec: Spec, name: str, host_processors: int) -> Shape:
    """The hardware that a spec asks for; InputError for what no guest can have."""
    limits = spec.limits
    _refuse(spec, name)
    memory = limits.memory_bytes or UNLIMITED_MEMORY_BYTES
    if memory < LEAST_MEMORY_BYTES:
        least = LEAST_MEMORY_BYTES // MIB
        raise InputError(f"{name}: a guest with its kernel needs {least} MiB of memory at least")
    cpus = limits.cpus or float(host_processors)
    return Shape(
        memory_mib=memory // MIB,
        processors=max(1, math.ceil(cpus)),
        disk_bytes=_whole(limits.disk_bytes or UNLIMITED_DISK_BYTES),
        pids=limits.pids,
        cpuset=limits.cpuset,
        network=spec.egress is Egress.FULL,
    )


def _refuse(spec: Spec, name: str) -> None:
    if spec.deps:
        raise InputError(f"{name} lays no dependencies: name an image that holds them")
    if spec.warm:
        raise InputError(f"{name} keeps no interpreter warm: leave Spec.warm out, or take a jail")
    if not isinstance(spec.egress, Egress):
        raise InputError(
            f"{name} cannot limit egress to a list: take Egress.NONE, or the jail, which can"
        )
    if spec.repo is not None:
        path = posixpath.normpath(spec.repo.path)
        if posixpath.isabs(path) or path.startswith("..") or path == ".":
            raise InputError(f"repo.path must lie inside the workspace, not at {spec.repo.path!r}")


def _whole(size: int) -> int:
    """Whole MiB: disks are counted in blocks."""
    return max(16 * MIB, size // MIB * MIB)
