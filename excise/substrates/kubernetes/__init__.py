"""Pods of a Kubernetes cluster, any that a kubeconfig reaches: the paper's second archetype.

A sandbox is a pod of its own that sleeps; an action is the API server's exec over a websocket. Two moments are
noted of its start: the first answered command, and the condition Ready that orchestrators wait for.

Covered: limits of cpu, memory and disk, and requests; node labels, runtime classes, read-only roots; no service
account token unless asked for; scheduling, pull, start, volume and eviction failures as errors of their own with
the cluster's events quoted; everything an action started is dead after a time-out (see `container.killing`);
pods of killed owners are swept by label. With agent-sandbox installed, `through=sandbox` has its controller make the pods.
Not covered: a limit of processes or cores, which are the node's to set; users by name, and another user for one
action (`kubernetes+agent` has both); a list of allowed egress. Without egress a NetworkPolicy is asked for, and
enforced if the cluster's network does. What isolates a pod is its runtime class: by default it shares the node's kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from excise.substrates.base import Availability
from excise.substrates.kubernetes.options import Options

if TYPE_CHECKING:
    from excise.substrates.kubernetes.substrate import Kubernetes

__all__ = ["availability", "open_substrate"]


def open_substrate(**options: str) -> Kubernetes:
    """`config=`, `context=`, `namespace=`, `pull=missing|never|always`, `node=LABEL=VALUE`, `runtime=CLASS`, and more.

    The rest is told in `options.Options`; `agent=inside` for actions through an agent, placed by `place=exec|volume`.
    """
    chosen = Options.of(options)
    if chosen.agent == "inside":
        from excise.substrates.kubernetes.inside import KubernetesInside

        return KubernetesInside(chosen)
    from excise.substrates.kubernetes.substrate import Kubernetes

    return Kubernetes(chosen)


async def availability(**options: str) -> Availability:
    """Whether a cluster answers and lets us make pods; if not, what is missing and what to do."""
    from excise.substrates.kubernetes.available import cluster_availability

    return await cluster_availability(Options.of(options))
