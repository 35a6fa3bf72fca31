"""Every substrate by name, imported when it is asked for.

A name is a row here or an entry point of the group `excise.substrates`, whose value is a module or an object
with `open_substrate(**options) -> Substrate` and `async availability(**options) -> Availability`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from excise.errors import InputError
from excise.substrates.base import Availability, Substrate

GROUP = "excise.substrates"


@dataclass(frozen=True, slots=True)
class Row:
    """Where a substrate lives, the options its name stands for, and the extra that it needs."""

    module: str
    preset: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None


_CONTAINER = "excise.substrates.container"
_KUBERNETES = "excise.substrates.kubernetes"
_INSIDE = {"agent": "inside"}
_GVISOR = {"runtime": "runsc"}

ADAPTED = tuple(
    name.split("@")
    for name in (
        "local@swe-rex",
        "bwrap@mini-swe-agent",
        "docker@sdk",
        "docker@swe-rex",
        "docker@mini-swe-agent",
    )
)
"""Substrates through the tools that people reach them by, as `SUBSTRATE@TOOL`."""

TABLE: dict[str, Row] = {
    "fake": Row("excise.substrates.fake"),
    "local": Row("excise.substrates.local"),
    "bwrap": Row("excise.substrates.local.bwrap"),
    "jail": Row("excise.jail"),
    "jail+pool": Row("excise.pools.declared", {"over": "jail"}),
    "jail+warm-interpreter": Row("excise.jail", {"warm": "yes"}),
    "jail+pool+warm-interpreter": Row("excise.pools.declared", {"over": "jail+warm-interpreter"}),
    "docker": Row(_CONTAINER, {"engine": "docker"}, extra="docker"),
    "docker+agent": Row(_CONTAINER, {"engine": "docker", **_INSIDE}, extra="docker"),
    "podman": Row(_CONTAINER, {"engine": "podman"}, extra="docker"),
    "podman+agent": Row(_CONTAINER, {"engine": "podman", **_INSIDE}, extra="docker"),
    "gvisor": Row(_CONTAINER, {"engine": "docker", **_GVISOR}, extra="docker"),
    "gvisor+agent": Row(_CONTAINER, {"engine": "docker", **_GVISOR, **_INSIDE}, extra="docker"),
    "vm": Row("excise.substrates.vm", {"machine": "qemu"}),
    "vm+fork": Row("excise.substrates.vm", {"machine": "qemu", "start": "fork"}),
    "vm-cloud": Row("excise.substrates.vm.cloud", extra="ec2"),
    "vm-uml": Row("excise.substrates.vm", {"machine": "uml"}),
    "kubernetes": Row(_KUBERNETES, extra="kubernetes"),
    "kubernetes+agent": Row(_KUBERNETES, _INSIDE, extra="kubernetes"),
    "service": Row("excise.substrates.remote"),
    "e2b": Row("excise.substrates.hosted.e2b", extra="e2b"),
    "daytona": Row("excise.substrates.hosted.daytona", extra="daytona"),
    **{
        f"{below}@{tool}": Row("excise.substrates.adapters", {"on": below, "tool": tool})
        for below, tool in ADAPTED
    },
}


def names() -> tuple[str, ...]:
    """Ours first, weakest isolation first; then those of others, by name."""
    return (*TABLE, *sorted(_outsiders()))


def parse(text: str) -> tuple[str, dict[str, str]]:
    """`docker:network=host,runtime=runc` is a name and its options."""
    name, colon, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InputError(f"{text!r}: after the name write key=value,key=value, not {part!r}")
        if key in options:
            raise InputError(f"{text!r}: {key} is given twice")
        options[key] = value
    _known(name)
    return name, options


def open_substrate(name: str, /, **options: str) -> Substrate:
    """The substrate of that name. Opening touches nothing yet; `availability` tells whether it works."""
    module, preset = _load(name)
    opened: Substrate = module.open_substrate(**_merged(name, preset, options))
    return opened


async def availability(name: str, /, **options: str) -> Availability:
    """Whether it works on this host. A missing dependency or a broken plug-in is an answer, not an error."""
    try:
        module, preset = _load(name)
    except _Missing as error:
        return Availability(False, str(error), error.remedy)
    available: Availability = await module.availability(**_merged(name, preset, options))
    return available


class _Missing(InputError):
    def __init__(self, message: str, remedy: str | None) -> None:
        super().__init__(message)
        self.remedy = remedy


def _load(name: str) -> tuple[Any, Mapping[str, str]]:
    _known(name)
    row = TABLE.get(name)
    try:
        if row is not None:
            return importlib.import_module(row.module), row.preset
        return _outsiders()[name].load(), {}
    except ImportError as error:
        remedy = f"pip install 'excise[{row.extra}]'" if row is not None and row.extra else None
        what = f"{name} cannot be imported: {error}"
        raise _Missing(f"{what}; run {remedy}" if remedy else what, remedy) from error


def _merged(name: str, preset: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    if fixed := sorted(set(preset) & set(options)):
        raise InputError(f"{name} stands for {fixed[0]}={preset[fixed[0]]}; leave that option out")
    return {**preset, **options}


def _known(name: str) -> None:
    known = names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(f"no substrate {name!r}; there are {', '.join(known)}{hint}")


def _outsiders() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP) if e.name not in TABLE}
