import asyncio
from dataclasses import replace

import pytest

from excise.clock import FakeClock
from excise.errors import InputError, Phase, SubstrateError
from excise.measure.judge import judge
from excise.measure.trial import perform
from excise.tax.breakdown import break_down
from excise.types import Observation
from excise.workloads.base import Step
from excise.workloads.goldens import golden_of


@pytest.fixture
def run(rig):
    def run(setting, clock=None, **how):
        seen = asyncio.run(perform(setting, clock=clock or FakeClock(), nonce="n", **how))
        return judge(seen, setting, rig.slot(setting.cell), study="s")

    return run


def test_written_down_time_is_measured_to_the_nanosecond(rig, run):
    clock = FakeClock(123)
    work = rig.listed("sleep 0.3", "sleep 0.7", set_up=["sleep 2"])
    record = run(rig.setting(work, clock), clock)
    assert record.outcome == "ok"
    parts = break_down(record.complete)
    assert parts.create_ns == 500_000_000
    assert parts.ready_ns == 260_000_000
    assert parts.set_up_ns == 2_010_000_000
    assert parts.inside_ns == 1_000_000_000
    assert parts.dispatch_ns == 20_000_000
    assert parts.gap_ns == 0
    assert parts.cleanup_ns == 125_000_000
    assert parts.total_ns == 3_915_000_000
    assert [a.kind for a in record.set_up] == ["set_up"]


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.READY, Phase.RUN, Phase.DESTROY])
def test_a_substrate_that_fails_is_recorded_with_its_phase(rig, run, phase):
    error = SubstrateError("broken", substrate="fake", phase=phase, retryable=True)
    record = run(rig.setting(rig.listed("true"), fail={phase: error}))
    assert record.outcome == "substrate_error"
    assert (record.error.phase, record.error.message, record.error.retryable) == (
        str(phase),
        "broken",
        True,
    )
    assert "requested" in record.marks
    assert ("created" in record.marks) == (phase is not Phase.CREATE)


def test_the_action_at_which_the_substrate_failed_is_named(rig, run):
    def fail(phase, before):
        # 0 is the probe, 1 and 2 are answered
        if phase is Phase.RUN and before == 3:
            return SubstrateError("gone", substrate="fake", phase=phase)
        return None

    record = run(rig.setting(rig.listed("true", "true", "true", "true"), fail=fail))
    assert record.error.action == 2
    assert len(record.actions) == 2
    assert record.actions_planned == 4


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.READY, Phase.RUN])
def test_a_substrate_that_hangs_is_a_timeout_and_the_study_goes_on(rig, run, phase):
    record = run(rig.setting(rig.listed("true"), hang={phase}), deadline_s=0.05)
    assert record.outcome == "timeout"
    assert record.error.phase in {"create", "ready", "run"}


def test_a_substrate_that_hangs_at_the_end_is_let_go_of(rig, run):
    setting = rig.setting(rig.listed("true"), hang={Phase.DESTROY})
    record = run(setting, end_within_s=0.05)
    assert (record.outcome, record.error.phase) == ("timeout", "destroy")
    assert len(record.actions) == 1


def test_another_output_than_golden_fails_the_trial_and_names_the_action(rig, run):
    work = rig.listed("echo same", "echo other")
    goldens = (golden_of(0, b"same\n"), golden_of(0, b"golden\n"))
    record = run(rig.setting(work, goldens=goldens))
    assert record.outcome == "mismatch"
    assert record.error.action == 1
    assert [a.golden for a in record.actions] == [True, False]


def test_an_exit_code_that_the_author_did_not_expect_fails_the_trial(rig, run):
    record = run(rig.setting(rig.listed("false")))
    assert record.outcome == "mismatch"
    assert "exit code 1 instead of 0" in record.error.message


def test_where_nothing_is_known_nothing_is_claimed(rig, run):
    record = run(rig.setting(rig.listed("false", exit_code=None)))
    assert record.outcome == "ok"
    assert record.actions[0].golden is None


def test_output_that_was_cut_off_is_never_golden(rig, run):
    answers = {"big": Observation(0, stdout=b"ab", truncated=True)}
    work = rig.listed("big")
    record = run(rig.setting(work, answers=answers, goldens=(golden_of(0, b"ab"),)))
    assert record.outcome == "mismatch"
    assert "cut" in record.error.message


def test_a_set_up_that_fails_ends_the_trial_there(rig, run):
    record = run(rig.setting(rig.listed("true", set_up=["exit 3"])))
    assert record.outcome == "mismatch"
    assert record.error.action == 0
    assert record.actions == ()


def test_an_action_that_runs_into_its_limit_is_a_timeout(rig, run):
    work = rig.listed("true")
    steps = (Step("command", "sleep 9", timeout_s=1.0),)
    record = run(rig.setting(replace(work, make_steps=lambda _: steps)))
    assert record.outcome == "timeout"
    assert record.actions[0].timed_out


def test_an_inside_time_longer_than_the_action_breaks_conservation(rig, run):
    class Boasting:
        def __init__(self, inner):
            self.inner, self.name, self.isolation = inner, "fake", inner.isolation
            self.create, self.ready, self.destroy = inner.create, inner.ready, inner.destroy
            self.times_inside = True

        async def run(self, box, action):
            return replace(await self.inner.run(box, action), inside_ns=10**9)

    setting = rig.setting(rig.listed("true"))
    record = run(replace(setting, substrate=Boasting(setting.substrate)))
    assert record.outcome == "conservation"


def test_an_error_of_our_own_is_recorded_as_ours(rig, run):
    record = run(rig.setting(rig.listed("true"), fail={Phase.RUN: KeyError("x")}))
    assert (record.outcome, record.error.type) == ("harness_error", "KeyError")


def test_bad_input_is_not_a_trial(rig, run):
    with pytest.raises(InputError):
        run(rig.setting(rig.listed("true"), fail={Phase.CREATE: InputError("no such image")}))


def test_nothing_is_left_behind_whatever_happened(rig, run):
    for phase in (Phase.READY, Phase.RUN):
        setting = rig.setting(rig.listed("true"), hang={phase})
        run(setting, deadline_s=0.02)
        assert setting.substrate.boxes == ()


def test_a_trial_due_earlier_counts_its_waiting(rig, run):
    clock = FakeClock(5_000_000_000)
    record = run(rig.setting(rig.listed("true"), clock), clock, due_ns=2_000_000_000)
    assert break_down(record.complete).queue_ns == 3_000_000_000


def test_a_persistent_shell_is_opened_in_the_set_up(rig, run):
    clock = FakeClock()
    record = run(rig.setting(rig.listed("echo a", persistent=True), clock), clock)
    assert record.outcome == "ok"
    assert len(record.actions) == 1
