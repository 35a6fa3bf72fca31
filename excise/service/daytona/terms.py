"""How long a sandbox lives by its owner's intervals, and what it may reach: the protocol's words in the cloud's. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any, cast

from excise.errors import InputError
from excise.service.daytona.asked import NewSandbox
from excise.service.errors import Unsupported
from excise.service.sandbox import AtEnd
from excise.types import GIB, Allow, Egress, Limits

MINUTE_S = 60.0
AUTO_STOP_MIN = 15
"""The protocol's default: a sandbox that nobody used for that long is stopped."""

AUTO_ARCHIVE_MIN = 7 * 24 * 60
NEVER = -1
MOST_MINUTES = 10 * 365 * 24 * 60
WEB_PORTS = (443, 80)


@dataclass(frozen=True, slots=True)
class Terms:
    """What an owner wants of one sandbox, and is told again. Intervals in minutes, as the protocol has them."""

    public: bool = False
    network_block_all: bool = False
    domain_allow_list: str | None = None
    target: str = "local"
    user: str | None = None
    snapshot: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    auto_stop: int = 0
    auto_pause: int = 0
    auto_archive: int = AUTO_ARCHIVE_MIN
    auto_delete: int = NEVER
    ttl: int = 0
    dockerfile: str | None = None

    @property
    def idle_s(self) -> float | None:
        """How long nobody may use it."""
        minutes = self.auto_pause or self.auto_stop
        return minutes * MINUTE_S if minutes else None

    @property
    def at_idle(self) -> AtEnd:
        """What happens then."""
        if self.auto_delete == 0:
            return AtEnd.DESTROY
        return AtEnd.PAUSE if self.auto_pause else AtEnd.STOP

    @property
    def lifetime_s(self) -> float | None:
        return self.ttl * MINUTE_S if self.ttl else None

    @property
    def rest_s(self) -> float | None:
        """How long it may be stopped before it is deleted."""
        return self.auto_delete * MINUTE_S if self.auto_delete > 0 else None

    def after(self, interval: str, minutes: int) -> Terms:
        """With one interval set anew; `interval` is the field's name."""
        least = NEVER if interval == "auto_delete" else 0
        if not least <= minutes <= MOST_MINUTES:
            raise InputError(f"an interval is {least} to {MOST_MINUTES} minutes, not {minutes}")
        return replace(self, **cast("dict[str, Any]", {interval: minutes}))


def terms_of(asked: NewSandbox, *, stops: bool) -> Terms:
    """The terms of a new sandbox. `stops`: the substrate can stop what nobody uses."""
    _only_what_there_is(asked)
    default_stop = AUTO_STOP_MIN if stops and not asked.auto_pause_interval else 0
    terms = Terms(
        public=bool(asked.public),
        network_block_all=bool(asked.network_block_all),
        domain_allow_list=asked.domain_allow_list or None,
        target=asked.target or "local",
        user=asked.user,
        snapshot=asked.snapshot,
        env=dict(asked.env or {}),
        dockerfile=asked.build_info.dockerfile_content if asked.build_info else None,
    )
    for name, minutes, default in (
        ("auto_stop", asked.auto_stop_interval, default_stop),
        ("auto_pause", asked.auto_pause_interval, 0),
        ("auto_archive", asked.auto_archive_interval, AUTO_ARCHIVE_MIN),
        ("auto_delete", asked.auto_delete_interval, NEVER),
        ("ttl", asked.ttl_minutes, 0),
    ):
        terms = terms.after(name, default if minutes is None else minutes)
    return terms


def egress_of(terms: Terms, allow_list: str | None, most: Egress) -> Egress | Allow:
    """What it may reach: nothing, the domains on its list, or what the service gives at most."""
    if terms.network_block_all:
        return Egress.NONE
    if allow_list:
        return Allow(tuple(_targets_of_network(item) for item in _items(allow_list)))
    if terms.domain_allow_list:
        domains = _items(terms.domain_allow_list)
        return Allow(tuple(f"{name}:{port}" for name in domains for port in WEB_PORTS))
    return most


def limits_of(cpu: int | None, memory: int | None, disk: int | None, base: Limits) -> Limits:
    """Cores and GiB in place of what holds otherwise; no more than the service gives, which is decided elsewhere."""
    for name, value in (("cpu", cpu), ("memory", memory), ("disk", disk)):
        if value is not None and not 0 < value < 2**31:
            raise InputError(f"{name} {value}: give a whole number from 1 on")
    return replace(
        base,
        cpus=base.cpus if cpu is None else float(cpu),
        memory_bytes=base.memory_bytes if memory is None else memory * GIB,
        disk_bytes=base.disk_bytes if disk is None else disk * GIB,
    )


def told(limits: Limits) -> dict[str, int]:
    """Limits in the protocol's whole numbers; what is not limited is told as 0."""
    return {
        "cpu": math.ceil(limits.cpus or 0),
        "memory": math.ceil((limits.memory_bytes or 0) / GIB),
        "disk": math.ceil((limits.disk_bytes or 0) / GIB),
    }


def _only_what_there_is(asked: NewSandbox) -> None:
    for given, what in (
        (asked.gpu, "GPUs"),
        (asked.volumes, "volumes"),
        (asked.secrets, "secrets"),
        (asked.outbound_proxy_url, "outbound proxies"),
        (asked.kvm, "KVM in sandboxes"),
    ):
        if given:
            raise Unsupported(f"this service has no {what}")


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _targets_of_network(item: str) -> str:
    try:
        network = ip_network(item, strict=False)
    except ValueError as error:
        raise InputError(f"networkAllowList: {item!r} is no network: {error}") from error
    raise Unsupported(
        f"this service opens no whole networks ({network}): give domainAllowList, or networkBlockAll"
    )
