"""What a pod's status and events mean: each kind of trouble by its own type, in the cluster's words."""

from __future__ import annotations

import pytest

from excise.errors import InputError, Phase, SandboxGone
from excise.substrates.kubernetes import failures
from excise.substrates.kubernetes.failures import (
    Evicted,
    PullFailed,
    StartFailed,
    Unschedulable,
    VolumeFailed,
)


def pod(state: dict | None = None, **status: object) -> dict:
    containers = [] if state is None else [{"name": "box", "state": state}]
    return {"metadata": {}, "status": {"containerStatuses": containers, **status}}


def waiting(reason: str, message: str = "") -> dict:
    return pod({"waiting": {"reason": reason, "message": message}})


NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}


@pytest.mark.parametrize(
    ("found", "kind", "patient"),
    [
        (waiting("ErrImagePull"), PullFailed, False),
        (waiting("ErrImageNeverPull"), PullFailed, False),
        (waiting("CreateContainerConfigError"), StartFailed, False),
        (waiting("RunContainerError"), StartFailed, False),
        (pod(phase="Failed", reason="Evicted", message="low on memory"), Evicted, False),
        (pod({"terminated": {"exitCode": 128, "reason": "StartError"}}), StartFailed, False),
        (pod({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), SandboxGone, False),
        (pod(conditions=[NO_NODE]), Unschedulable, True),
    ],
)
def test_each_trouble_has_its_type(found: dict, kind: type, patient: bool) -> None:
    trouble = failures.trouble_of(found)
    assert trouble is not None
    assert (trouble.kind, trouble.patient) == (kind, patient)


@pytest.mark.parametrize(
    "found",
    [pod(), waiting("ContainerCreating"), waiting("PodInitializing"), pod({"running": {}}), {}],
)
def test_what_is_under_way_is_no_trouble(found: dict) -> None:
    assert failures.trouble_of({"metadata": {}, **found}) is None


def test_a_pod_that_somebody_deletes_is_gone() -> None:
    found = {**pod({"running": {}}), "metadata": {"deletionTimestamp": "now"}}
    trouble = failures.trouble_of(found)
    assert trouble is not None
    assert trouble.kind is SandboxGone


def event(reason: str, message: str, when: str = "1", kind: str = "Warning") -> dict:
    return {"reason": reason, "message": message, "lastTimestamp": when, "type": kind}


def test_the_last_warnings_are_quoted_once_and_in_order() -> None:
    events = [
        event("C", "third", "3"),
        event("A", "first", "1"),
        event("B", "second", "2"),
        event("B", "second", "2"),
        event("Z", "zeroth", "0"),
        event("Started", "fine", "4", "Normal"),
    ]
    assert failures.quote(events) == "A: first; B: second; C: third"


def raised(said: str, events: list[dict], kind: type = PullFailed) -> Exception:
    trouble = failures.Trouble(kind, said)
    return failures.error_of(
        trouble, events, box="excise-1", substrate="kubernetes", phase=Phase.READY
    )


def test_an_image_that_will_never_be_there_is_bad_input_and_another_failure_may_pass() -> None:
    never = raised("ErrImagePull", [event("Failed", 'image "x" not found')])
    assert isinstance(never, InputError)
    assert 'image "x" not found' in str(never)
    again = raised("ErrImagePull", [event("Failed", "i/o timeout")])
    assert isinstance(again, PullFailed)
    assert again.retryable
    assert again.phase == "ready"


def test_a_pod_that_waits_for_a_volume_says_so() -> None:
    stuck = failures.slowness_of([event("FailedMount", "no such volume")], 30.0)
    assert stuck.kind is VolumeFailed
    assert failures.slowness_of([], 30.0).kind is StartFailed
