"""Sandboxes and snapshots as the SDK reads them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from excise.service.daytona.terms import Terms, told
from excise.service.sandbox import Sandbox, State
from excise.service.templates import Template
from excise.types import Egress

STATES = {
    State.RUNNING: "started",
    State.PAUSED: "paused",
    State.STOPPED: "stopped",
    State.ENDED: "destroyed",
}
DAEMON_VERSION = "0.226.1"
"""The version of the protocol that is spoken, in the only place where it asks for one."""


def stamp(wall_s: float) -> str:
    """A time of day as the protocol writes it."""
    return (
        datetime.fromtimestamp(wall_s, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def state_of(box: Sandbox, *, archived: bool) -> str:
    """The protocol's word for its state."""
    return "archived" if archived and box.state is State.STOPPED else STATES[box.state]


def sandbox(
    box: Sandbox,
    terms: Terms,
    *,
    proxy_url: str,
    created_s: float,
    used_s: float,
    ends_s: float | None,
    archived: bool = False,
) -> dict[str, object]:
    """One sandbox, with all fields that any version of the SDK wants."""
    state = state_of(box, archived=archived)
    build = terms.dockerfile and {
        "dockerfileContent": terms.dockerfile,
        "createdAt": stamp(created_s),
        "updatedAt": stamp(created_s),
        "snapshotRef": box.spec.image,
    }
    found: dict[str, object] = {
        "id": box.id,
        "organizationId": box.owner,
        "name": box.name or box.id,
        "snapshot": terms.snapshot,
        "user": terms.user or box.user or "root",
        "env": {**terms.env},
        "labels": dict(box.labels),
        "public": terms.public,
        "networkBlockAll": terms.network_block_all or box.spec.egress is Egress.NONE,
        "domainAllowList": terms.domain_allow_list,
        "kvm": False,
        "target": terms.target,
        **told(box.spec.limits),
        "gpu": 0,
        "state": state,
        "desiredState": state,
        "errorReason": box.ended,
        "recoverable": False,
        "backupState": "None",
        "autoStopInterval": terms.auto_stop,
        "autoPauseInterval": terms.auto_pause,
        "autoArchiveInterval": terms.auto_archive,
        "autoDeleteInterval": terms.auto_delete,
        "autoDestroyAt": stamp(ends_s) if ends_s is not None and terms.ttl else None,
        "volumes": [],
        "buildInfo": build or None,
        "createdAt": stamp(created_s),
        "updatedAt": stamp(used_s),
        "lastActivityAt": stamp(used_s),
        "sandboxClass": "container",
        "daemonVersion": DAEMON_VERSION,
        "runnerId": None,
        "toolboxProxyUrl": proxy_url,
    }
    return found


def snapshot(template: Template, *, state: str, error: str | None = None) -> dict[str, object]:
    """One snapshot: a template as this protocol names it."""
    made = stamp(template.made_s)
    limits = told(template.spec.limits)
    source = template.labels.get("sandbox")
    return {
        "id": template.id,
        "organizationId": template.owner,
        "general": template.owner is None,
        "name": template.name,
        "imageName": template.spec.image,
        "state": state,
        "size": None,
        "entrypoint": None if template.start is None else ["bash", "-c", template.start],
        "cpu": limits["cpu"],
        "gpu": 0,
        "mem": limits["memory"],
        "disk": limits["disk"],
        "errorReason": error,
        "createdAt": made,
        "updatedAt": made,
        "lastUsedAt": None,
        "sourceSandboxId": source,
        "regionIds": ["local"],
        "sandboxClass": "container",
    }


def page(items: list[dict[str, object]], page_number: int, limit: int) -> dict[str, object]:
    """A numbered page of a list."""
    at = (page_number - 1) * limit
    pages = max(1, -(-len(items) // limit))
    return {
        "items": items[at : at + limit],
        "total": len(items),
        "page": page_number,
        "totalPages": pages,
    }
