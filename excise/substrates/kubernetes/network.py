"""What of the network a pod reaches: the cluster's network decides, and is asked by a policy."""

from __future__ import annotations

import os

from excise.errors import InputError, Phase, SubstrateUnavailable
from excise.substrates.kubernetes.cluster import Cluster, Refused
from excise.substrates.kubernetes.pod import closed_network
from excise.types import Allow, Egress

HOST = "EXCISE_KUBERNETES_HOST"
"""An address of this host that pods can reach."""


class Network:
    """One policy for all sandboxes without egress, made when the first of them is."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stands: bool | None = None

    async def prepare(self, egress: Egress | Allow) -> None:
        if egress is not Egress.NONE or self._stands is not None:
            return
        try:
            async with self._cluster.asking(Phase.CREATE) as cluster:
                at = f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/networkpolicies"
                try:
                    await cluster.call("POST", at, closed_network())
                except Refused as error:
                    if error.status != 409:
                        raise
            self._stands = True
        except SubstrateUnavailable:  # we may make pods, but no policies
            self._stands = False

    def words(self) -> str:
        """What a report must say of it."""
        said = {
            None: "no sandbox without egress yet",
            True: "none: by a NetworkPolicy, where the cluster's network enforces it",
            False: "not limited: this account may not make a NetworkPolicy",
        }
        return said[self._stands]

    def host_address(self) -> str:
        address = os.environ.get(HOST)
        if not address:
            raise InputError(
                f"pods may not reach this host: set {HOST} to an address of it that they can"
            )
        return address
