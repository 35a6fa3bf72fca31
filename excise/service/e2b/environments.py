"""What a request for a sandbox wants, in the cloud's own words."""

from __future__ import annotations

from typing import Any

from excise.service.cloud import Cloud
from excise.service.e2b import asked
from excise.service.e2b.naming import environment_of
from excise.service.e2b.reach import PERSON
from excise.service.errors import Unsupported
from excise.service.policy import permitted
from excise.service.sandbox import AtEnd, Wanted
from excise.types import Allow, Egress

LIFETIME_S = 300
EVERYTHING = "0.0.0.0/0"
_NOT_THERE = {
    "mcp": "MCP servers",
    "iam": "workload identities",
    "volumeMounts": "volumes",
}
Notes = dict[str, object]


def wanted_of(cloud: Cloud, given: dict[str, Any]) -> tuple[Wanted, Notes]:
    """What is wanted, and what is to be told of it again."""
    for name, what in _NOT_THERE.items():
        if given.get(name):
            raise Unsupported(f"{what} are not there: this service has sandboxes alone")
    labels = asked.texts(given, "metadata")
    name = asked.text(given, "templateID")
    environment = environment_of(name, labels)
    notes: Notes = {"template": name.partition("?")[0] or "base", "alias": name}
    if asked.flag(asked.table(given, "autoResume"), "enabled", default=False):
        notes["auto_resume"] = True
    wanted = Wanted(
        template=environment.template,
        env=asked.environment(given, "envVars"),
        labels=labels,
        lifetime_s=asked.whole(given, "timeout", LIFETIME_S) or 0.001,
        at_end=_end_of(given),
        person=PERSON,
        repo=environment.repo,
        deps=environment.deps,
        egress=_egress_of(cloud, given, notes),
        door="e2b",
    )
    return wanted, notes


def _end_of(given: dict[str, Any]) -> AtEnd:
    if not asked.flag(given, "autoPause", default=False):
        return AtEnd.DESTROY
    return AtEnd.PAUSE if asked.flag(given, "autoPauseMemory", default=True) else AtEnd.STOP


def _egress_of(cloud: Cloud, given: dict[str, Any], notes: Notes) -> Egress | Allow:
    """As much as the service gives, unless less is asked for. SDKs ask for all by default: that is no demand."""
    network = asked.table(given, "network")
    closed = given.get("allow_internet_access") is False
    if given.get("allow_internet_access") is not None:
        notes["allowInternetAccess"] = asked.flag(given, "allow_internet_access", default=True)
    if network:
        notes["network"] = {k: v for k, v in network.items() if k in {"allowOut", "denyOut"}}
    unknown = network.keys() - {"allowOut", "denyOut", "allowPublicTraffic"}
    if any(network[each] for each in unknown):
        raise Unsupported(f"{', '.join(sorted(unknown))} of a network cannot be chosen here")
    denied, allowed = asked.words(network, "denyOut"), asked.words(network, "allowOut")
    if set(denied) - {EVERYTHING}:
        raise Unsupported(f"denyOut: all of the network can be denied ({EVERYTHING}), not parts")
    if not (closed or denied):
        return cloud.policy.egress
    return permitted(Allow(tuple(_targets(allowed))), cloud.policy)


def _targets(allowed: list[str]) -> list[str]:
    found = []
    for each in allowed:
        if "*" in each or "/" in each:
            raise Unsupported(f"allowOut: {each[:80]!r} is no single host: name each one")
        found += [each] if each.rpartition(":")[2].isdigit() else [f"{each}:80", f"{each}:443"]
    return found
