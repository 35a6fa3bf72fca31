"""A look into the cluster of the tests, past the substrate."""

from __future__ import annotations

import asyncio
from typing import Any

from excise.errors import Phase
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.options import Options


def ask(method: str, path: str, body: dict[str, Any] | None = None, **query: str) -> dict[str, Any]:
    """One request to the API server; `path` may leave the namespace to us: pods/NAME."""

    async def asked() -> dict[str, Any]:
        cluster = Cluster(Options())
        try:
            async with cluster.asking(Phase.RUN):
                at = path if path.startswith("/") else cluster.in_namespace(path)
                return await cluster.call(method, at, body, **query)
        finally:
            await cluster.close()

    return asyncio.run(asked())


def pods_of(pid: int) -> list[str]:
    """The sandboxes that this process has made."""
    listed = ask("GET", "pods", labelSelector="excise=1")["items"]
    return [
        pod["metadata"]["name"]
        for pod in listed
        if f"/{pid}/" in pod["metadata"]["annotations"]["excise.owner"]
    ]
