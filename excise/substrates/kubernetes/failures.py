"""What is wrong with a pod, told from its status and its events, as an error of its own type. Nothing is asked here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from excise.errors import InputError, Phase, SandboxGone, SubstrateError


class Unschedulable(SubstrateError):
    """No node takes the pod: none has room, or none matches."""


class PullFailed(SubstrateError):
    """The node cannot get the image."""


class VolumeFailed(SubstrateError):
    """The node cannot attach or mount what the pod wants."""


class StartFailed(SubstrateError):
    """The node has the image and cannot start a container of it."""


class Evicted(SandboxGone):
    """The node took its resources back: it ran out of something, or the pod used more than it may."""


_PULL = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_START = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
        "PostStartHookError",
    }
)
_NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
_EVICTIONS = frozenset(
    {"Evicted", "Preempted", "Preempting", "NodeLost", "Shutdown", "NodeShutdown"}
)
_VOLUME_EVENTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_ABSENT = ("not found", "does not exist", "manifest unknown", "neverpull", "invalid reference")
"""How registries and kubelets say that there is no such image, and will be none."""

_QUOTED = 3
_ALWAYS_SAID = frozenset({"MissingClusterDNS"})
"""Warnings of every pod of a cluster that is set up so."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A kind of error and what the cluster says of it. `patient`: it may pass by itself."""

    kind: type[SubstrateError]
    said: str
    patient: bool = False


def trouble_of(pod: Mapping[str, Any]) -> Trouble | None:
    """What keeps a pod from running, or has ended it."""
    status = pod.get("status") or {}
    if status.get("reason") in _EVICTIONS:
        return Trouble(Evicted, _words(status.get("reason"), status.get("message")))
    for container in status.get("containerStatuses") or ():
        found = _trouble_in(container.get("state") or {})
        if found is not None:
            return found
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return Trouble(SandboxGone, "it is being deleted")
    if status.get("phase") in {"Failed", "Succeeded"}:
        return Trouble(SandboxGone, _words(status.get("phase"), status.get("message")))
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        said = _words(scheduled.get("reason"), scheduled.get("message"))
        return Trouble(Unschedulable, said, patient=True)
    return None


def _trouble_in(state: Mapping[str, Any]) -> Trouble | None:
    waiting, ended = state.get("waiting") or {}, state.get("terminated")
    reason = waiting.get("reason")
    if reason in _PULL:
        return Trouble(PullFailed, _words(reason, waiting.get("message")))
    if reason in _START:
        return Trouble(StartFailed, _words(reason, waiting.get("message")))
    if ended is not None and ended.get("reason") in _NEVER_RAN:
        return Trouble(StartFailed, _words(ended.get("reason"), ended.get("message")))
    if ended is not None:
        code = f"its container ended with {ended.get('exitCode')}"
        return Trouble(SandboxGone, f"{code}: {_words(ended.get('reason'), ended.get('message'))}")
    return None


def condition(pod: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """One of a pod's conditions; empty where nobody has said it yet."""
    conditions: Iterable[Mapping[str, Any]] = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def is_ready(pod: Mapping[str, Any]) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_placed(pod: Mapping[str, Any]) -> bool:
    """Whether it has a node."""
    return bool((pod.get("spec") or {}).get("nodeName"))


def slowness_of(events: Iterable[Mapping[str, Any]], waited_s: float) -> Trouble:
    """Of a pod that does not come up and does not say why: its events may."""
    stuck = any(event.get("reason") in _VOLUME_EVENTS for event in events)
    kind = VolumeFailed if stuck else StartFailed
    return Trouble(kind, f"it did not run within {waited_s:g} s", patient=True)


def error_of(
    trouble: Trouble, events: Iterable[Mapping[str, Any]], *, box: str, substrate: str, phase: Phase
) -> SubstrateError | InputError:
    """What to raise, with what the cluster's events say quoted."""
    quoted = quote(events)
    text = f"{box}: {trouble.said}" + (f" [{quoted}]" if quoted else "")
    if trouble.kind is PullFailed and _is_absent(f"{trouble.said} {quoted}"):
        return InputError(
            f"{substrate} has no such image: {text}; push it to a registry that the cluster reaches, "
            "or say how it is loaded: EXCISE_KUBERNETES_LOAD"
        )
    again = trouble.kind is not SandboxGone
    return trouble.kind(text, substrate=substrate, phase=phase, retryable=again)


def quote(events: Iterable[Mapping[str, Any]]) -> str:
    """The last events that warn, each once, as the cluster words them."""
    said = [
        _words(event.get("reason"), event.get("message"))
        for event in sorted(events, key=_when)
        if event.get("type") == "Warning" and event.get("reason") not in _ALWAYS_SAID
    ]
    return "; ".join(list(dict.fromkeys(said))[-_QUOTED:])


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _is_absent(text: str) -> bool:
    return any(sign in text.lower() for sign in _ABSENT)


def _words(reason: str | None, message: str | None) -> str:
    return ": ".join(part.strip() for part in (reason, message) if part) or "no reason given"
