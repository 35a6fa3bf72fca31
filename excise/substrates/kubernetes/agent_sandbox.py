"""SIG agent-sandbox's object `Sandbox` (agents.x-k8s.io), as far as a pod per sandbox needs it. Nothing is asked here.

Its shape is that of the published custom resource; no controller of theirs runs in our laboratory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUP = "agents.x-k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
"""Newest first; what we say of a sandbox is the same in both."""
KIND = "Sandbox"


def sandbox_of(pod: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The sandbox whose pod is this one."""
    marks = {name: pod["metadata"][name] for name in ("labels", "annotations")}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": KIND,
        "metadata": {"name": pod["metadata"]["name"], **marks},
        "spec": {"podTemplate": {"metadata": marks, "spec": pod["spec"]}},
    }


def path(version: str, namespace: str, name: str = "") -> str:
    at = f"/apis/{GROUP}/{version}/namespaces/{namespace}/sandboxes"
    return f"{at}/{name}" if name else at


def version_in(groups: Mapping[str, Any]) -> str | None:
    """The newest version that a cluster serves and we know, by its list of API groups."""
    served = {
        version["version"]
        for group in groups.get("groups") or ()
        if group.get("name") == GROUP
        for version in group.get("versions") or ()
    }
    return next((version for version in VERSIONS if version in served), None)


def owner_in(pod: Mapping[str, Any]) -> tuple[str, str] | None:
    """The version and name of the sandbox that a pod was made for, if it was."""
    for each in pod["metadata"].get("ownerReferences") or ():
        group, _, version = each.get("apiVersion", "").partition("/")
        if group == GROUP and each.get("kind") == KIND:
            return version, each["name"]
    return None
