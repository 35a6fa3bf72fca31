"""The pod of one sandbox, decided from its spec and the options; nothing is asked here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from excise.errors import InputError
from excise.substrates.container.config import KEEP_ALIVE, WORKSPACE
from excise.substrates.kubernetes.options import Options
from excise.types import Allow, Egress, Limits, Spec

CONTAINER = "box"
SESSION = "excise-session"
"""The label that one driver object watches its pods by."""
CLOSED = "excise-egress"
"""The label that the network policy selects sandboxes without egress by."""

_PULL = {"missing": "IfNotPresent", "never": "Never", "always": "Always"}
_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_CHARS = 63
_USER = re.compile(r"(\d+)(?::(\d+))?")
_MIB = 1 << 20


def pod_of(
    box: str, spec: Spec, image: str, options: Options, session: str, marked: Mapping[str, str]
) -> dict[str, Any]:
    """The body of the request. `marked` says whose it is."""
    if spec.deps:
        raise InputError("pods lay no dependencies: name an image that holds them")
    if spec.warm:
        raise InputError("pods keep no interpreter warm: leave Spec.warm out, or take a jail")
    if isinstance(spec.egress, Allow):
        raise InputError(
            "kubernetes cannot limit egress to a list: take Egress.NONE or Egress.FULL, or the jail"
        )
    labels = {n: v for n, v in marked.items() if is_label(n) and is_label(v)} | {SESSION: session}
    if spec.egress is Egress.NONE:
        labels[CLOSED] = "none"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": box, "labels": labels, "annotations": dict(marked)},
        "spec": _spec(spec, image, options),
    }


def _spec(spec: Spec, image: str, options: Options) -> dict[str, Any]:
    body: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": options.token == "mounted",  # noqa: S105  # no secret
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # the pod's own first process reaps what is orphaned
        "containers": [_container(spec, image, options)],
    }
    if options.node_labels:
        body["nodeSelector"] = options.node_labels
    if options.runtime is not None:
        body["runtimeClassName"] = options.runtime
    if options.root == "read-only":
        body["volumes"] = [{"name": name, "emptyDir": {}} for name in ("tmp", "work")]
    return body


def _container(spec: Spec, image: str, options: Options) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": _PULL[options.pull],
        "command": list(KEEP_ALIVE),
        "workingDir": WORKSPACE,
        "env": [{"name": k, "value": v} for k, v in ({"LANG": "C.UTF-8"} | dict(spec.env)).items()],
        "resources": resources(spec.limits, options),
    }
    security: dict[str, Any] = {}
    if spec.user is not None and options.agent == "none":
        security |= _user(spec.user)
    if options.root == "read-only":
        security["readOnlyRootFilesystem"] = True
        made["volumeMounts"] = [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # in the pod
            {"name": "work", "mountPath": WORKSPACE},
        ]
    if security:
        made["securityContext"] = security
    return made


def resources(limits: Limits, options: Options) -> dict[str, dict[str, str]]:
    """What it may use, and what the scheduler counts it with. Processes and cores are the node's to limit."""
    most, least = {}, {}
    cpus = float(options.request_cpus)
    if limits.cpus is not None:
        most["cpu"] = f"{limits.cpus:g}"
        cpus = min(cpus, limits.cpus)
    least["cpu"] = f"{cpus:g}"
    if limits.memory_bytes is None:
        least["memory"] = options.request_memory
    else:
        most["memory"] = str(limits.memory_bytes)
        least["memory"] = options.request_memory
        if limits.memory_bytes < 64 * _MIB:
            least["memory"] = most["memory"]
    if limits.disk_bytes is not None:
        most["ephemeral-storage"] = str(limits.disk_bytes)
        least["ephemeral-storage"] = "0"
    return {"limits": most, "requests": least}


def is_label(text: str) -> bool:
    """Whether Kubernetes takes it as a label's value; names of ours are no longer than that either."""
    return len(text) <= _LABEL_CHARS and _LABEL.fullmatch(text) is not None


def _user(user: str) -> dict[str, int]:
    found = _USER.fullmatch(user)
    if found is None:
        raise InputError(f"kubernetes takes users by number, as 1000 or 1000:1000, not {user!r}")
    group = found[2]
    return {"runAsUser": int(found[1])} | ({} if group is None else {"runAsGroup": int(group)})


POLICY = "excise-no-egress"


def closed_network() -> dict[str, Any]:
    """The policy under which sandboxes without egress stand, where the cluster's network enforces policies."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "labels": {"excise": "1"}},
        "spec": {
            "podSelector": {"matchLabels": {CLOSED: "none"}},
            "policyTypes": ["Egress"],
            "egress": [],
        },
    }
