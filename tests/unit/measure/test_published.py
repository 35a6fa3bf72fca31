"""Published digests: the ones of our descriptors are looked up, and a wrong one is never passed over."""

from __future__ import annotations

import pytest

from excise.measure.published import key_of, unlike_published
from excise.tasks import load
from excise.tasks.descriptor import Published

OURS = {name: load.task(name).golden for name in load.names()}
EVERY = [(task, key) for task, golden in OURS.items() for key in golden]


@pytest.mark.parametrize(("task", "key"), EVERY)
def test_every_digest_of_ours_is_compared_with_its_workload(task: str, key: str) -> None:
    name, right = f"{key}:{task}", OURS[task][key].sha256
    assert not unlike_published({name: right}, OURS)
    (doubt,) = unlike_published({name: "0" * 64}, OURS)
    assert doubt.kind == "golden"
    assert name in doubt.text


def test_every_task_of_ours_publishes_both_tiers_and_a_trajectory() -> None:
    for task, golden in OURS.items():
        assert {"T1", "T2", "K10"} <= set(golden), task


def test_a_variant_is_compared_with_its_own_digest_only() -> None:
    plain, arc = "a" * 64, "b" * 64
    known = {"mine": {"K10": Published(plain, "3.11"), "K10+arc": Published(arc, "3.11")}}
    assert not unlike_published({"K10:mine": plain, "K10:mine+arc": arc}, known)
    assert not unlike_published({"K10:mine+faulty": "c" * 64, "T0": "d" * 64}, known)
    assert len(unlike_published({"K10:mine": arc, "K10:mine+arc": plain}, known)) == 2


def test_the_key_is_the_name_without_the_task() -> None:
    assert key_of("K50:mine+session+faulty=1") == "K50+session+faulty=1"
    assert key_of("T2:odd-2.0") == "T2"
