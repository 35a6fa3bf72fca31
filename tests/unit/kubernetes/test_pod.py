"""The pod that is asked for, and what is refused before anything is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.kubernetes import agent_sandbox, placing, pod
from excise.substrates.kubernetes.options import Options
from excise.substrates.kubernetes.pod import is_label, pod_of, resources
from excise.types import GIB, MIB, Allow, Deps, Egress, Isolation, Limits, Spec


def made(spec: Spec | None = None, **options: str) -> dict:
    chosen = Options.of(options)
    return pod_of("excise-1", spec or Spec(), "image", chosen, "session", {"excise": "1"})


def test_a_pod_has_no_token_no_volume_and_is_gone_at_once() -> None:
    spec = made()["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["restartPolicy"] == "Never"
    assert spec["terminationGracePeriodSeconds"] == 0
    assert "volumes" not in spec
    assert made(token="mounted")["spec"]["automountServiceAccountToken"] is True


def test_options_reach_the_pod() -> None:
    found = made(node="pool=gpu;zone=a", runtime="kata", pull="never")["spec"]
    assert found["nodeSelector"] == {"pool": "gpu", "zone": "a"}
    assert found["runtimeClassName"] == "kata"
    assert found["containers"][0]["imagePullPolicy"] == "Never"


@given(
    cpus=st.none() | st.floats(0.01, 64),
    memory=st.none() | st.integers(MIB, 64 * GIB),
    disk=st.none() | st.integers(MIB, 64 * GIB),
)
def test_no_request_is_above_its_limit(
    cpus: float | None, memory: int | None, disk: int | None
) -> None:
    found = resources(Limits(cpus=cpus, memory_bytes=memory, disk_bytes=disk), Options())
    limits, requests = found["limits"], found["requests"]
    assert ("cpu" in limits, "memory" in limits) == (cpus is not None, memory is not None)
    if cpus is not None:
        assert float(requests["cpu"]) <= float(limits["cpu"])
    if memory is not None:
        assert _bytes(requests["memory"]) <= int(limits["memory"])


def _bytes(text: str) -> int:
    return int(text.removesuffix("Mi")) * MIB if text.endswith("Mi") else int(text)


def test_what_a_pod_cannot_do_is_refused() -> None:
    for spec in (
        Spec(egress=Allow(("pypi.org:443",))),
        Spec(deps=(Deps(("attrs==25.1.0",)),)),
        Spec(user="nobody"),
    ):
        with pytest.raises(InputError):
            made(spec)
    assert made(Spec(user="7:8"))["spec"]["containers"][0]["securityContext"] == {
        "runAsUser": 7,
        "runAsGroup": 8,
    }


def test_sandboxes_without_egress_are_those_that_the_policy_selects() -> None:
    selector = pod.closed_network()["spec"]["podSelector"]["matchLabels"]
    closed, full = (
        made()["metadata"]["labels"],
        made(Spec(egress=Egress.FULL))["metadata"]["labels"],
    )
    assert selector.items() <= closed.items()
    assert not selector.items() <= full.items()


@given(st.text(max_size=80))
def test_a_label_is_what_kubernetes_takes(text: str) -> None:
    if is_label(text):
        assert len(text) <= 63
        assert all(c.isascii() and (c.isalnum() or c in "-_.") for c in text)


def test_labels_that_are_none_are_kept_as_annotations() -> None:
    marked = {"run": "a/b c", "team": "rl"}
    found = pod_of("excise-1", Spec(), "image", Options(), "session", marked)["metadata"]
    assert found["annotations"] == marked
    assert "run" not in found["labels"]
    assert found["labels"]["team"] == "rl"


@pytest.mark.parametrize(
    "given", [{"pul": "never"}, {"pull": "often"}, {"patience": "0"}, {"request_cpus": "some"}]
)
def test_options_that_are_none_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InputError):
        Options.of(given)


def test_a_runtime_class_says_what_isolates() -> None:
    assert Options().isolation is Isolation.CONTAINER
    assert Options(runtime="gvisor").isolation is Isolation.USER_KERNEL
    assert Options(runtime="kata-qemu").isolation is Isolation.VM


def test_the_agent_as_a_volume_leaves_the_rest_of_the_pod_as_it_is() -> None:
    before = made(root="read-only", agent="inside")
    after = placing.with_volume(before, "map")
    assert after["metadata"] == before["metadata"]
    assert [v["name"] for v in after["spec"]["volumes"]] == ["tmp", "work", "agent"]
    container = after["spec"]["containers"][0]
    assert container["command"][0] == placing.PROGRAM
    assert container["resources"] == before["spec"]["containers"][0]["resources"]


def test_a_sandbox_of_agent_sandbox_has_the_same_pod() -> None:
    asked = made()
    found = agent_sandbox.sandbox_of(asked, "v1beta1")
    assert found["apiVersion"] == "agents.x-k8s.io/v1beta1"
    assert found["metadata"]["name"] == asked["metadata"]["name"]
    assert found["spec"]["podTemplate"]["spec"] == asked["spec"]
    assert found["spec"]["podTemplate"]["metadata"]["labels"] == asked["metadata"]["labels"]


def test_the_newest_version_of_agent_sandbox_that_is_served_is_taken() -> None:
    def served(*versions: str) -> dict:
        return {
            "groups": [
                {"name": agent_sandbox.GROUP, "versions": [{"version": v} for v in versions]}
            ]
        }

    assert agent_sandbox.version_in(served("v1alpha1", "v1beta1")) == "v1beta1"
    assert agent_sandbox.version_in(served("v1alpha1")) == "v1alpha1"
    assert agent_sandbox.version_in(served("v9")) is None
    assert agent_sandbox.version_in({"groups": [{"name": "apps"}]}) is None
