"""What a figure's caption must say of a cluster."""

from __future__ import annotations

from excise.errors import Phase, SubstrateError
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.options import Options


async def facts_of(cluster: Cluster, options: Options) -> dict[str, str]:
    async with cluster.asking(Phase.CREATE):
        version = await cluster.call("GET", "/version")
    return {
        "kubernetes": str(version.get("gitVersion")),
        "client": "kubernetes_asyncio's session, websocket exec v4",
        "ready": "the pod's condition" if options.wait == "condition" else "the first answer",
        "service account token": options.token,
        "runtime class": options.runtime or "the node's default",
        "image policy": options.pull,
        "requests": f"{options.request_cpus} cpus, {options.request_memory}",
        "processes limit": "the kubelet's podPidsLimit, not the spec's",
        **await _nodes(cluster),
    }


async def _nodes(cluster: Cluster) -> dict[str, str]:
    try:
        async with cluster.asking(Phase.CREATE):
            nodes = (await cluster.call("GET", "/api/v1/nodes"))["items"]
    except SubstrateError:
        return {"nodes": "not told to this account"}
    about = [node["status"]["nodeInfo"] for node in nodes]
    words = {
        "runtime": "containerRuntimeVersion",
        "kubelet": "kubeletVersion",
        "kernel": "kernelVersion",
    }
    told = {name: ", ".join(sorted({info[key] for info in about})) for name, key in words.items()}
    return {"nodes": str(len(nodes)), **told}
