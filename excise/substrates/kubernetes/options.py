"""What may be chosen about a cluster and its pods, apart from a sandbox's spec; nothing is asked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from excise.errors import InputError
from excise.types import Isolation

_CHOICES = {
    "pull": ("missing", "never", "always"),
    "wait": ("condition", "answer"),
    "token": ("none", "mounted"),
    "root": ("writable", "read-only"),
    "agent": ("none", "inside"),
    "place": ("exec", "volume"),
    "through": ("pod", "sandbox"),
}

_KERNELS_OF_THEIR_OWN = {
    "gvisor": Isolation.USER_KERNEL,
    "runsc": Isolation.USER_KERNEL,
    "kata": Isolation.VM,
}
"""Runtime classes whose usual names say what stands between a pod and its node."""


@dataclass(frozen=True, slots=True)
class Options:
    """All of it as it is given: words."""

    config: str | None = None
    """A kubeconfig; None: where kubectl would look, then the pod that this process runs in."""
    context: str | None = None
    namespace: str | None = None
    """None: the one that the kubeconfig says, else `default`."""
    pull: str = "missing"
    node: str = ""
    """A node's labels, as `pool=sandboxes`; several with a semicolon between."""
    runtime: str | None = None
    """A runtime class."""
    token: str = "none"  # noqa: S105  # whether there is one
    request_cpus: str = "0.1"
    request_memory: str = "64Mi"
    """What the scheduler keeps free for each pod; its limits are the spec's."""
    wait: str = "condition"
    """What ready means: the pod's condition Ready, as orchestrators wait for it, or the first answered command."""
    patience: str = "60"
    """Seconds that a pod may take to find a node, and then to start."""
    root: str = "writable"
    agent: str = "none"
    place: str = "exec"
    through: str = "pod"
    load: str | None = None
    """A command that takes an image archive to the nodes of a cluster without a registry."""

    @property
    def name(self) -> str:
        return "kubernetes+agent" if self.agent == "inside" else "kubernetes"

    @property
    def isolation(self) -> Isolation:
        known = (self.runtime or "").partition("-")[0]
        return _KERNELS_OF_THEIR_OWN.get(known, Isolation.CONTAINER)

    @property
    def patience_s(self) -> float:
        return float(self.patience)

    @property
    def node_labels(self) -> dict[str, str]:
        pairs = (part.partition("=") for part in self.node.split(";") if part)
        return {name: value for name, _, value in pairs}

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        known = tuple(each.name for each in fields(cls))
        if unknown := sorted(set(given) - set(known)):
            raise InputError(
                f"kubernetes has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        for option, allowed in _CHOICES.items():
            if given.get(option, allowed[0]) not in allowed:
                raise InputError(
                    f"kubernetes: {option}={given[option]} is not one of {', '.join(allowed)}"
                )
        _refuse_no_number("patience", given)
        _refuse_no_number("request_cpus", given)
        return cls(**given)


def _refuse_no_number(option: str, given: Mapping[str, str]) -> None:
    try:
        right = float(given.get(option, "1")) > 0
    except ValueError:
        right = False
    if not right:
        raise InputError(f"kubernetes: {option}={given[option]} is not a number above zero")
