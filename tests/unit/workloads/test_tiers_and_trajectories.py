"""The tiers are the specification's lists; trajectories keep their mix and end well at any length."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tasks.descriptor import Prepared
from excise.types import Egress
from excise.workloads.base import Listed, Site, Step
from excise.workloads.catalogue import task_of, workload
from excise.workloads.trajectory import trajectory, turns

ID = "attrs-1417"
MIX = {"inspect": 4, "command": 2, "edit": 2, "test": 2}


def made(name: str, prepared: Prepared) -> Listed:
    return workload(name, {ID: prepared})


def test_t0_is_one_echo(site: Site, prepared: Prepared) -> None:
    (step,) = made("T0", prepared).steps(site)
    assert step.script == "echo rollout-ready"
    assert made("T0", prepared).task is None


def test_the_floor_is_three_hundred_times_true(site: Site, prepared: Prepared) -> None:
    assert [s.script for s in made("T0x300", prepared).steps(site)] == ["true"] * 300


def test_t1_is_six_inspections_of_a_repository_that_is_there(
    site: Site, prepared: Prepared
) -> None:
    t1 = made(f"T1:{ID}", prepared)
    steps = t1.steps(site)
    assert [s.what for s in steps] == [
        "revision", "list", "count", "search", "search-syntax", "read-range",
    ]  # fmt: skip
    assert {s.kind for s in steps} == {"inspect"}
    assert t1.preloaded
    assert t1.egress is Egress.NONE


def test_t2_is_a_clone_and_thirteen_actions_from_red_to_green(
    site: Site, prepared: Prepared
) -> None:
    t2 = made(f"T2:{ID}", prepared)
    (clone,) = t2.set_up(site)
    steps = t2.steps(site)
    assert clone.script == "git clone -q git://host/x repo"
    assert clone.cwd is None
    assert len(steps) == 13
    tests = [(s.what, s.exit_code) for s in steps if s.kind == "test"]
    assert tests == [("test-fix", 1), ("test-fix", 0), ("test-file", 0)]
    assert t2.egress is Egress.FULL
    assert not t2.preloaded


@pytest.mark.parametrize("length", range(10, 310, 10))
def test_the_mix_is_the_same_at_every_multiple_of_ten(
    length: int, site: Site, prepared: Prepared
) -> None:
    kinds = Counter(s.kind for s in trajectory(prepared, length).steps(site))
    assert kinds == {kind: count * length // 10 for kind, count in MIX.items()}


@settings(deadline=None)
@given(length=st.integers(1, 400))
def test_any_length_ends_with_the_only_fix_and_the_test_that_passes(
    length: int, site: Site, prepared: Prepared
) -> None:
    listed = trajectory(prepared, length)
    steps, before = listed.steps(site), listed.set_up(site)
    assert len(steps) == length
    assert (steps[-1].what, steps[-1].exit_code) == ("test-fix", 0)
    earlier = [s for s in steps[:-1] if s.what == "test-fix"]
    assert all(s.exit_code == 1 for s in earlier)
    made_ = [s.what for s in (*before, *steps)]
    assert made_.count("gold-patch") == 1
    assert made_.count("test-patch") == 1
    assert made_.index("test-patch") < made_.index("test-fix")


def test_the_set_up_makes_only_the_edits_that_a_cut_leaves_out(
    site: Site, prepared: Prepared
) -> None:
    assert trajectory(prepared, 20).set_up(site) == ()
    assert [s.what for s in trajectory(prepared, 13).set_up(site)] == ["test-patch"]
    assert [s.what for s in trajectory(prepared, 1).set_up(site)] == ["test-patch", "gold-patch"]


def test_a_hundred_and_fifty_actions_fail_exactly_sixteen_times(
    site: Site, prepared: Prepared
) -> None:
    steps = trajectory(prepared, 150).steps(site)
    failing = Counter(s.what for s in steps if s.exit_code == 1)
    assert failing == {"test-fix": 14, "test-file": 2}


def test_shorter_lengths_take_the_last_cycles_and_longer_ones_begin_again(
    prepared: Prepared,
) -> None:
    cycles = prepared.task.cycles
    assert [t.cycle for t in turns(cycles, 10)] == [cycles[-1]]
    assert [t.cycle for t in turns(cycles, 50)] == list(cycles[-5:])
    assert [t.cycle for t in turns(cycles, 150)] == list(cycles)
    assert [t.cycle for t in turns(cycles, 170)] == [*cycles, cycles[0], cycles[-1]]
    assert len({t.number for t in turns(cycles, 400)}) == 40


def test_python_is_the_sites_and_no_placeholder_is_left(site: Site, prepared: Prepared) -> None:
    steps = (*trajectory(prepared, 150).steps(site), *made(f"T2:{ID}", prepared).steps(site))
    scripts = "\n".join(s.script for s in steps)
    assert "{python}" not in scripts
    assert "{test}" not in scripts
    assert "/venv/bin/python -m pytest" in scripts


@pytest.mark.parametrize("patch", [b"-a\n+b\nEND\n", b"-a\r\n+b\r\n", b"\xff\n", b"no newline"])
def test_any_patch_reaches_the_sandbox_whole(patch: bytes) -> None:
    import subprocess

    from excise.workloads.actions import patching

    script = patching(patch).replace("git apply -", "cat")
    assert subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout == patch


@pytest.mark.parametrize(
    "name",
    ["", "T3", "T0:x", "T1", "T1:", "K:x", "K0:attrs-1417", "K10", "T1:other", "K10:attrs-1417+loud",
     "K10:attrs-1417+arc+arc", "K10:attrs-1417+arc=2", "K10:attrs-1417+faulty=0",
     "K10:attrs-1417+faulty=soon", "T1:attrs-1417+arc", "T0+clone", "T2:attrs-1417+clone"],
)  # fmt: skip
def test_a_name_that_means_nothing_is_refused_in_one_line(name: str, prepared: Prepared) -> None:
    with pytest.raises(InputError) as refused:
        workload(name, {ID: prepared})
    assert "\n" not in str(refused.value)


def test_the_task_of_a_name() -> None:
    assert task_of("T0") is None
    assert task_of("T0x300+session") is None
    assert task_of("K64:django-524+arc+faulty=30") == "django-524"


def test_a_step_brings_its_own_directory_and_environment(site: Site, prepared: Prepared) -> None:
    step: Step = trajectory(prepared, 10).steps(site)[-1]
    action = step.action({"PATH": "/bin", "TZ": "CET"})
    assert action.cwd == "repo"
    assert action.env["PYTHONPATH"] == "src"
    assert action.env["TZ"] == "CET"
