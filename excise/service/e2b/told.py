"""Sandboxes and templates as the control plane tells clients of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from excise.errors import InputError
from excise.service.e2b.entries import moment_s
from excise.service.sandbox import AtEnd, Sandbox, State
from excise.service.templates import Template
from excise.types import MIB, Limits

DAEMON_VERSION = "0.6.4"
"""The version of the daemon in E2B's sandboxes that this door does as; SDKs go by it."""

CLIENT = "excise"
_STATES = {State.RUNNING: "running", State.PAUSED: "paused", State.STOPPED: "paused"}


def made(sandbox: Sandbox) -> dict[str, Any]:
    """What a client gets that may use it."""
    told = {
        "templateID": sandbox.notes.get("template", "base"),
        "sandboxID": sandbox.id,
        "clientID": CLIENT,
        "envdVersion": DAEMON_VERSION,
        "envdAccessToken": sandbox.token,
        "domain": None,
    }
    return told | _alias(sandbox)


def listed(sandbox: Sandbox, started_s: float, ends_s: float) -> dict[str, Any]:
    """One of a list."""
    told = {
        "templateID": sandbox.notes.get("template", "base"),
        "sandboxID": sandbox.id,
        "clientID": CLIENT,
        "startedAt": moment_s(started_s),
        "endAt": moment_s(ends_s),
        "state": _STATES.get(sandbox.state, "paused"),
        "envdVersion": DAEMON_VERSION,
        "metadata": sandbox.labels,
        **sizes(sandbox.spec.limits),
    }
    return told | _alias(sandbox)


def detailed(sandbox: Sandbox, started_s: float, ends_s: float) -> dict[str, Any]:
    """All there is to know of it."""
    pauses = sandbox.at_end is not AtEnd.DESTROY
    if sandbox.state is not State.RUNNING:
        pauses = sandbox.at_rest_end is not AtEnd.DESTROY
    told = listed(sandbox, started_s, ends_s) | {
        "envdAccessToken": sandbox.token,
        "domain": None,
        "lifecycle": {
            "onTimeout": "pause" if pauses else "kill",
            "autoResume": bool(sandbox.notes.get("auto_resume")),
        },
    }
    if sandbox.state is not State.RUNNING:
        told["pauseMode"] = "full" if sandbox.state is State.PAUSED else "filesystem"
    for note in ("allowInternetAccess", "network"):
        if note in sandbox.notes:
            told[note] = sandbox.notes[note]
    return told


def _alias(sandbox: Sandbox) -> dict[str, object]:
    alias = sandbox.notes.get("alias")
    return {"alias": alias} if alias else {}


def sizes(limits: Limits) -> dict[str, int]:
    return {
        "cpuCount": max(1, math.ceil(limits.cpus or 1)),
        "memoryMB": (limits.memory_bytes or 0) // MIB,
        "diskSizeMB": (limits.disk_bytes or 0) // MIB,
    }


def template(found: Template, *, building: bool = False) -> dict[str, Any]:
    """One template of a list."""
    at = moment_s(found.made_s)
    return {
        "templateID": found.id,
        "buildID": build_id(found),
        "public": found.public or found.owner is None,
        "aliases": [found.name],
        "names": [found.name],
        "createdAt": at,
        "updatedAt": at,
        "createdBy": None,
        "lastSpawnedAt": None,
        "spawnCount": 0,
        "buildCount": 1,
        "envdVersion": DAEMON_VERSION,
        "buildStatus": "building" if building else "ready",
        **sizes(found.spec.limits),
    }


def build_id(found: Template) -> str:
    """A build's name, in the form that SDKs want: the revision, as a UUID."""
    digits = "".join(c for c in found.revision if c in "0123456789abcdef")[:32].ljust(32, "0")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def labels_asked(query: str) -> dict[str, str]:
    """The metadata that is looked for. Clients quote it once for themselves, and once as a query."""
    return {unquote(name): unquote(value) for name, value in parse_qsl(query, max_num_fields=100)}


def states_asked(words: list[str]) -> frozenset[State]:
    """States by the names that clients have for them; both, where none is named."""
    named = [each for word in words for each in word.split(",") if each]
    if unknown := set(named) - {"running", "paused"}:
        raise InputError(f"{', '.join(sorted(unknown))[:80]}: a sandbox is running or paused")
    found: set[State] = set()
    if "running" in named or not named:
        found.add(State.RUNNING)
    if "paused" in named or not named:
        found |= {State.PAUSED, State.STOPPED}
    return frozenset(found)


def matches(sandbox: Sandbox, template: str | None, after_s: float | None, at_s: float) -> bool:
    """Whether a sandbox that was started then is among those looked for. Times are told to the microsecond."""
    if template and template not in {sandbox.notes.get("template"), sandbox.notes.get("alias")}:
        return False
    return after_s is None or round(at_s * 1e6) >= round(after_s * 1e6)


def error(status: int, message: str, **more: Mapping[str, object]) -> dict[str, Any]:
    return {"code": status, "message": message, **more}
