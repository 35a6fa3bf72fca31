"""Removes what killed owners left in a namespace: by label, and only where the owner is certainly dead."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from excise.errors import Phase, SandboxGone
from excise.substrates.container import owner
from excise.substrates.kubernetes import agent_sandbox
from excise.substrates.kubernetes.cluster import Cluster, Refused
from excise.substrates.kubernetes.objects import AT_ONCE
from excise.substrates.kubernetes.pod import POLICY

_MINE = f"{owner.MINE}=1"


async def sweep(cluster: Cluster, me: owner.Owner) -> int:
    async with cluster.asking(Phase.DESTROY):
        pods = (await cluster.call("GET", cluster.in_namespace("pods"), labelSelector=_MINE))[
            "items"
        ]
    dead = [pod for pod in pods if _is_orphan(pod, me)]
    for pod in dead:
        with contextlib.suppress(SandboxGone):
            await _remove(cluster, pod)
    if len(dead) == len(pods):
        await _remove_shared(cluster)
    return len(dead)


def _is_orphan(pod: Mapping[str, Any], me: owner.Owner) -> bool:
    who = owner.owner_of(pod["metadata"].get("annotations") or {})
    return owner.is_orphan(who, me, None if who is None else owner.started_ticks(who.pid))


async def _remove(cluster: Cluster, pod: Mapping[str, Any]) -> None:
    async with cluster.asking(Phase.DESTROY):
        made_for = agent_sandbox.owner_in(pod)
        if made_for is not None:  # its controller would make the pod again
            at = agent_sandbox.path(made_for[0], cluster.namespace, made_for[1])
            await cluster.call("DELETE", at)
        await cluster.call("DELETE", cluster.in_namespace("pods", pod["metadata"]["name"]), AT_ONCE)


async def _remove_shared(cluster: Cluster) -> None:
    """What pods of all owners stand on, once there are none; whoever comes next makes it again."""
    policies = f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/networkpolicies/{POLICY}"
    async with cluster.asking(Phase.DESTROY):
        with contextlib.suppress(Refused):
            await cluster.call("DELETE", policies)
        with contextlib.suppress(Refused):
            await cluster.call("DELETE", cluster.in_namespace("configmaps"), labelSelector=_MINE)
