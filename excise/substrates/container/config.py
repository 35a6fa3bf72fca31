"""What to ask the engine for, decided from a spec and from what the engine can do; nothing is asked here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from excise.errors import InputError
from excise.types import Allow, Egress, Fault, Isolation, Spec

WORKSPACE = "/work"
HOST = "host"
"""The image that `Spec` names by default: made of this host's own programs, see `excise.layers.host`."""

KEEP_ALIVE = ("sleep", "2147483647")
"""What pid 1, or its only child, does: nothing, for 68 years. `infinity` is not known to every sleep."""

_CHOICES = {
    "engine": ("docker", "podman"),
    "pull": ("never", "missing"),
    "init": ("engine", "none"),
    "agent": ("none", "inside"),
    "place": ("auto", "mount", "copy"),
    "root": ("writable", "read-only"),
}

_KERNELS_OF_THEIR_OWN = {"runsc": ("gvisor", Isolation.USER_KERNEL)}
"""Runtimes that put more than name spaces between a container and the host, and what they are known as."""

QUOTA_DRIVERS = frozenset({"btrfs", "zfs", "devicemapper"})


@dataclass(frozen=True, slots=True)
class Options:
    """What may be chosen about a container, apart from its spec."""

    engine: str = "docker"
    host: str | None = None
    network: str | None = None
    runtime: str | None = None
    pull: str = "never"
    init: str = "engine"
    agent: str = "none"
    place: str = "auto"
    root: str = "writable"

    @property
    def name(self) -> str:
        """What the substrate is called in errors and tables."""
        known, _ = _KERNELS_OF_THEIR_OWN.get(self.runtime or "", (self.engine, None))
        return f"{known}+agent" if self.agent == "inside" else known

    @property
    def isolation(self) -> Isolation:
        return _KERNELS_OF_THEIR_OWN.get(self.runtime or "", ("", Isolation.CONTAINER))[1]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        name = given.get("engine", "docker")
        known = tuple(each.name for each in fields(cls))
        if unknown := sorted(set(given) - set(known)):
            raise InputError(
                f"{name} has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        for option, allowed in _CHOICES.items():
            if given.get(option, allowed[0]) not in allowed:
                raise InputError(
                    f"{name}: {option}={given[option]} is not one of {', '.join(allowed)}"
                )
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the engine says of itself, as far as containers depend on it."""

    storage: str = ""
    backing: str = ""
    networks: Mapping[str, str] = field(default_factory=dict)
    """By name, the driver of each."""

    @property
    def limits_disk(self) -> bool:
        """overlay2 can only on xfs with project quotas, and says whether only when asked to."""
        return self.storage in QUOTA_DRIVERS

    def full_network(self, options: Options) -> str | None:
        """The network of a sandbox with egress: the chosen one, else the engine's bridge, else the host's.

        A kernel of its own cannot use the host's network, but any bridge; None where there is none.
        """
        if options.network is not None:
            return options.network
        if "bridge" in self.networks:
            return "bridge"
        if options.isolation is Isolation.CONTAINER:
            return "host"
        return min((n for n, driver in self.networks.items() if driver == "bridge"), default=None)

    def network(self, options: Options) -> str:
        """The same, where one is needed."""
        found = self.full_network(options)
        if found is None:
            raise InputError(
                f"{options.name} cannot use the host's network, and the engine has no other: "
                f"{options.engine} network create NAME"
            )
        return found


def _check_layers(spec: Spec) -> None:
    if spec.deps:
        raise InputError("containers lay no dependencies: name an image that holds them")
    if spec.warm:
        raise InputError("containers keep no interpreter warm: leave Spec.warm out, or take a jail")


def container_config(
    spec: Spec, image: str, options: Options, abilities: Abilities, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The body of the engine's create request."""
    limits = spec.limits
    _check_layers(spec)
    bounds: dict[str, Any] = {}
    if limits.cpus is not None:
        bounds["NanoCpus"] = round(limits.cpus * 1e9)
    if limits.memory_bytes is not None:
        bounds["Memory"] = bounds["MemorySwap"] = limits.memory_bytes
    if limits.pids is not None:
        bounds["PidsLimit"] = limits.pids
    if limits.cpuset is not None:
        bounds["CpusetCpus"] = ",".join(map(str, limits.cpuset))
    if limits.disk_bytes is not None and abilities.limits_disk:
        bounds["StorageOpt"] = {"size": str(limits.disk_bytes)}
    if options.runtime is not None:
        bounds["Runtime"] = options.runtime
    if options.root == "read-only":
        bounds["ReadonlyRootfs"] = True
        bounds["Tmpfs"] = dict.fromkeys(("/tmp", WORKSPACE), "exec,mode=1777")  # noqa: S108
    if isinstance(spec.egress, Allow):
        raise InputError(
            f"{options.engine} cannot limit egress to a list: take Egress.NONE or Egress.FULL, or the jail"
        )
    closed = spec.egress is Egress.NONE
    network = "none" if closed else abilities.network(options)
    return {
        "Image": image,
        "Entrypoint": list(KEEP_ALIVE),
        "Cmd": [],
        "Env": [f"{k}={v}" for k, v in ({"LANG": "C.UTF-8"} | dict(spec.env)).items()],
        "WorkingDir": WORKSPACE,
        "User": spec.user or "",
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": dict(labels),
        "HostConfig": {"NetworkMode": network, "Init": options.init == "engine", **bounds},
    }


_FAULTS: Sequence[tuple[re.Pattern[str], Fault, int]] = (
    (re.compile(r"chdir|cwd|working directory", re.IGNORECASE), Fault.MISSING_CWD, 126),
    (re.compile(r"permission denied|exec format", re.IGNORECASE), Fault.NOT_EXECUTABLE, 126),
    (re.compile(r"not found|no such file", re.IGNORECASE), Fault.MISSING_PROGRAM, 127),
    (re.compile(r"not a directory|is a directory", re.IGNORECASE), Fault.NOT_EXECUTABLE, 126),
)
_NO_USER = re.compile(r"(unable to find user|no matching entries in passwd)[^\r\n]*")


def fault_in(message: str) -> tuple[Fault, int] | None:
    """Why a runtime could not start a command, from what it printed, and the shell's number for it."""
    reason = message.rpartition("exec failed:")[2]
    return next(((f, code) for pattern, f, code in _FAULTS if pattern.search(reason)), None)


def missing_user_in(message: str) -> str | None:
    found = _NO_USER.search(message)
    return found[0] if found else None
