"""Why a cluster can or cannot be used from here, and the command that would change it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from excise.errors import ExciseError, Phase
from excise.substrates.base import Availability
from excise.substrates.kubernetes.options import Options

LAB = Path(__file__).resolve().parents[3] / "lab" / "kubernetes"
"""In a checkout: brings a real one-node cluster up on a bare Debian machine, and down without a trace."""
ANSWER_DEADLINE_S = 10.0
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

_VERBS = (("create", "pods", ""), ("delete", "pods", ""), ("create", "pods", "exec"))
_NAME = "export KUBECONFIG=$HOME/.kube/config"


async def cluster_availability(options: Options, lab: Path = LAB) -> Availability:
    """Look for a kubeconfig first: reading one takes a library that takes a second to load."""
    if options.config is None and not _is_configured():
        return Availability(False, "there is no kubeconfig and this is no pod", remedy(lab))
    from excise.substrates.kubernetes.cluster import Cluster

    cluster = Cluster(options)
    try:
        async with cluster.asking(Phase.CREATE, ANSWER_DEADLINE_S):
            version = await cluster.call("GET", "/version")
            forbidden = [words for words in _VERBS if not await _may(cluster, *words)]
    except ExciseError as error:
        return Availability(False, getattr(error, "message", str(error)), remedy(lab))
    finally:
        await cluster.close()
    about = f"Kubernetes {version.get('gitVersion')}, namespace {cluster.namespace}"
    if forbidden:
        verb, kind, below = forbidden[0]
        what = f"{kind}/{below}" if below else kind
        return Availability(
            False,
            f"{about}: this account may not {verb} {what}",
            f"kubectl create rolebinding excise --clusterrole=edit --namespace={cluster.namespace} --user=YOU",
        )
    return Availability(True, about)


def remedy(lab: Path = LAB) -> str:
    """With a checkout a cluster can be made; without one it has to be named."""
    if not lab.is_file():
        return _NAME
    name = shlex.quote(str(lab))
    return f'{name} up && eval "$({name} env)"'


def _is_configured() -> bool:
    named = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return any(each.exists() for each in (*named, Path.home() / ".kube" / "config", ACCOUNT))


async def _may(cluster: Any, verb: str, resource: str, subresource: str) -> bool:
    asked = {
        "namespace": cluster.namespace,
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
    }
    found = await cluster.call(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
         "spec": {"resourceAttributes": asked}},
    )  # fmt: skip
    return bool(found["status"]["allowed"])
