"""What is created and deleted in the cluster for a sandbox: a pod, or an object of which a controller makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from excise.errors import InputError, Phase, SandboxGone
from excise.substrates.kubernetes import agent_sandbox
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.options import Options

AT_ONCE = {"gracePeriodSeconds": 0}


class Objects(Protocol):
    """Both take the pod that there is to be."""

    async def create(self, pod: Mapping[str, Any]) -> None: ...
    async def delete(self, box: str) -> None:
        """Idempotent."""
        ...


def objects_of(options: Options, cluster: Cluster) -> Objects:
    return Sandboxes(cluster) if options.through == "sandbox" else Pods(cluster)


class Pods:
    """The pod itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, pod: Mapping[str, Any]) -> None:
        async with self._cluster.asking(Phase.CREATE) as cluster:
            await cluster.call("POST", cluster.in_namespace("pods"), pod)

    async def delete(self, box: str) -> None:
        try:
            async with self._cluster.asking(Phase.DESTROY) as cluster:
                await cluster.call("DELETE", cluster.in_namespace("pods", box), AT_ONCE)
        except SandboxGone:
            return


class Sandboxes:
    """A `Sandbox` of SIG agent-sandbox, whose controller makes a pod of the same name."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods = Pods(cluster)
        self._version: str | None = None

    async def create(self, pod: Mapping[str, Any]) -> None:
        async with self._cluster.asking(Phase.CREATE) as cluster:
            version = await self._served(cluster)
            body = agent_sandbox.sandbox_of(pod, version)
            await cluster.call("POST", agent_sandbox.path(version, cluster.namespace), body)

    async def delete(self, box: str) -> None:
        try:
            async with self._cluster.asking(Phase.DESTROY) as cluster:
                version = await self._served(cluster)
                at = agent_sandbox.path(version, cluster.namespace, box)
                await cluster.call("DELETE", at, {"propagationPolicy": "Background"})
        except SandboxGone:
            pass
        await self._pods.delete(box)

    async def _served(self, cluster: Cluster) -> str:
        if self._version is None:
            groups = await cluster.call("GET", "/apis")
            self._version = agent_sandbox.version_in(groups)
        if self._version is None:
            raise InputError(
                "this cluster has no agent-sandbox: install it, or take through=pod "
                f"(no API group {agent_sandbox.GROUP})"
            )
        return self._version
