"""Variants change what they name and nothing else, the same way every time."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.tasks.descriptor import Prepared
from excise.types import Egress
from excise.workloads import variants
from excise.workloads.base import Listed, Site, Step
from excise.workloads.catalogue import workload
from excise.workloads.trajectory import trajectory

ID = "attrs-1417"


def made(name: str, prepared: Prepared) -> Listed:
    return workload(name, {ID: prepared})


def key(step: Step) -> tuple[str, str, int | None]:
    return (step.kind, step.script, step.exit_code)


@settings(deadline=None)
@given(length=st.integers(1, 200))
def test_arc_is_a_permutation_that_looks_then_edits_then_tests(
    length: int, site: Site, prepared: Prepared
) -> None:
    plain = trajectory(prepared, length).steps(site)
    arc = variants.arc(plain)
    assert Counter(map(key, arc)) == Counter(map(key, plain))
    assert arc[-2:] == plain[-2:]
    phase = {"inspect": 0, "command": 1, "edit": 1, "test": 2}
    phases = [phase[s.kind] for s in arc[:-2]]
    assert phases == sorted(phases)


def test_arc_keeps_what_depends_on_an_edit_behind_it(site: Site, prepared: Prepared) -> None:
    scripts = [s.script for s in made(f"K150:{ID}+arc", prepared).steps(site)]
    for number in range(2, 16):
        written = next(i for i, s in enumerate(scripts) if s.startswith(f"cat > repro_{number}.py"))
        assert scripts.index(f"/venv/bin/python repro_{number}.py") > written


@settings(deadline=None)
@given(length=st.integers(10, 300), seed=st.integers(0, 99))
def test_faults_take_the_place_of_one_harmless_action_in_twenty(
    length: int, seed: int, site: Site, prepared: Prepared
) -> None:
    plain = trajectory(prepared, length).steps(site)
    faulted = variants.faulty(plain, seed=seed)
    changed = [(a, b) for a, b in zip(plain, faulted, strict=True) if a != b]
    assert len(changed) == -(-length // 20)
    assert {a.kind for a, _ in changed} <= {"inspect", "command"}
    assert all(b.exit_code != 0 for _, b in changed)
    assert sum(b.times_out for _, b in changed) == (1 if length > 40 else 0)
    assert faulted == variants.faulty(plain, seed=seed)


def test_another_seed_chooses_other_actions(site: Site, prepared: Prepared) -> None:
    plain = trajectory(prepared, 150).steps(site)
    assert variants.faulty(plain, seed=1) != variants.faulty(plain, seed=2)
    assert variants.chatty(plain, seed=1) != variants.chatty(plain, seed=2)


def test_the_time_limit_is_the_number_after_faulty(site: Site, prepared: Prepared) -> None:
    for name, limit_s in (("faulty", 2.0), ("faulty=30", 30.0)):
        steps = made(f"K150:{ID}+{name}", prepared).steps(site)
        assert [s.timeout_s for s in steps if s.times_out] == [limit_s]


def test_one_observation_in_ten_is_a_megabyte(site: Site, prepared: Prepared) -> None:
    import subprocess

    steps = made(f"K150:{ID}+chatty", prepared).steps(site)
    assert sum(s.what == "chatter" for s in steps) == 15
    ran = subprocess.run(["bash", "-c", variants.MEGABYTE], capture_output=True, check=True)
    assert len(ran.stdout) == 1_000_000


def test_faults_and_chatter_do_not_take_each_others_place(site: Site, prepared: Prepared) -> None:
    steps = made(f"K150:{ID}+chatty+faulty", prepared).steps(site)
    assert Counter(s.what for s in steps if s.what in variants.REPLACED) == {
        "fault": 8,
        "chatter": 15,
    }


def test_a_session_sets_directory_and_environment_once(site: Site, prepared: Prepared) -> None:
    session = made(f"K20:{ID}+session", prepared)
    *_, opened = session.set_up(site)
    assert "cd repo" in opened.script
    assert "export PYTHONPATH=src" in opened.script
    assert session.persistent_shell
    assert all(s.cwd is None and not s.env for s in session.steps(site))


def test_a_time_out_does_not_take_the_session_with_it(site: Site, prepared: Prepared) -> None:
    steps = made(f"K50:{ID}+faulty=3+session", prepared).steps(site)
    assert not any(s.times_out for s in steps)
    (limited,) = [s for s in steps if s.exit_code == 124]
    assert "timeout 3 bash -c" in limited.script
    assert limited.timeout_s > 3


def test_clone_makes_the_clone_the_set_up(site: Site, prepared: Prepared) -> None:
    cloned = made(f"K10:{ID}+clone", prepared)
    assert [s.what for s in cloned.set_up(site)] == ["clone"]
    assert not cloned.preloaded
    assert cloned.egress is Egress.FULL


NAMES = ("clone", "arc", "faulty", "chatty", "session")


@pytest.mark.parametrize(
    "names", [c for n in range(6) for c in combinations(NAMES, n)], ids="+".join
)
def test_all_variants_combine_in_any_order(
    names: tuple[str, ...], site: Site, prepared: Prepared
) -> None:
    base = f"K50:{ID}"
    there = [made("+".join((base, *order)), prepared) for order in permutations(names)][:6]
    assert len({there[0].name, base}) == (2 if names else 1)
    for one in there:
        assert len(one.steps(site)) == 50
        assert one.steps(site) == there[0].steps(site)
        assert one.set_up(site) == there[0].set_up(site)
