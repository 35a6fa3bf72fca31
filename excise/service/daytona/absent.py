"""What the SDK offers and this service does not: each with the reason that its caller is told. The documentation lists it.

`{...}` at the end of a path stands for all that is below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from excise.service.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Absent:
    """Paths below a prefix, and what to say."""

    prefix: str
    why: str


CONTROL: tuple[Absent, ...] = (
    Absent("volumes", "this service has no volumes: keep what is to stay in a snapshot"),
    Absent("secret", "this service keeps no secrets: give them as env_vars"),
    Absent("warm-pools", "pools fill themselves here, by what was asked for lately"),
    Absent(
        "object-storage",
        "files of a build context cannot be had here: upload them after the sandbox is created",
    ),
    Absent(
        "docker-registry",
        "registries are the operator's: `docker login` on the host of the service",
    ),
    Absent("organizations", "owners are made by the operator: `excise key add OWNER`"),
    Absent("users", "owners are made by the operator: `excise key add OWNER`"),
    Absent("api-keys", "keys are made by the operator: `excise key add OWNER`"),
)
"""Below `/api/`."""

SANDBOX: tuple[Absent, ...] = (
    Absent("ssh-access", "sandboxes have no SSH server: open a PTY session"),
    Absent("secrets", "this service keeps no secrets: give them as env_vars"),
    Absent("backup", "there is no backup: keep a snapshot"),
    Absent("telemetry", "this service keeps no history of each sandbox's use: see its /metrics"),
)
"""Below `/api/sandbox/ID/`."""

TOOLBOX: tuple[Absent, ...] = (
    Absent("lsp", "this service runs no language servers: start one in a session"),
    Absent("computeruse", "sandboxes have no display"),
    Absent("system", "this service tells the use of all sandboxes together: see its /metrics"),
)
"""Below `/toolbox/ID/`."""


def refuse(offers: tuple[Absent, ...], path: str) -> None:
    """Unsupported with the reason, if the path is below one of these."""
    head = path.partition("/")[0]
    for each in offers:
        if each.prefix == head:
            raise Unsupported(each.why)
