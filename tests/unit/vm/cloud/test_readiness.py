"""The table of steps: everything leads on, is waited out, or ends it; every step is stamped in its order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.vm.cloud.readiness import (
    FIRST_PAUSE_S,
    LEADS,
    LONGEST_PAUSE_S,
    WAITED_OUT,
    Lost,
    Progress,
    Sign,
    Step,
)

WAY = (Sign.RUNS, Sign.HAS_ADDRESS, Sign.OPEN, Sign.LET_IN, Sign.ANSWERED)


def progress():
    made = Progress()
    made.begin(0)
    return made


def test_the_way_is_the_steps_in_their_order():
    made = progress()
    for now, sign in enumerate(WAY, 1):
        assert not made.ready
        assert made.see(sign, now * 10**9)
    assert made.ready
    assert list(made.stamps) == list(Step)
    assert made.spans_s() == {str(step): 1.0 for step in list(Step)[1:]}
    assert made.waited == {}


def test_what_leads_on_is_never_also_waited_out():
    for (step, sign), to in LEADS.items():
        assert sign not in WAITED_OUT[step]
        assert to is not step


@given(st.lists(st.sampled_from(Sign)))
def test_whatever_is_seen_the_steps_are_reached_one_after_the_other(signs):
    made, steps = progress(), list(Step)
    for now, sign in enumerate(signs, 1):
        before = made.step
        try:
            led = made.see(sign, now)
        except Lost:
            assert made.step is before
            break
        if led:
            assert steps.index(made.step) == steps.index(before) + 1
            assert made.stamps[made.step] == now
        else:
            assert steps.index(made.step) <= steps.index(before)
            assert FIRST_PAUSE_S <= made.pause_s <= LONGEST_PAUSE_S
    reached = [made.stamps[step] for step in steps if step in made.stamps]
    assert len(reached) >= 1
    assert sum(made.waited.values()) + len(reached) >= 1


def test_a_server_that_comes_and_goes_is_waited_for_ever_longer():
    made = progress()
    for now, sign in enumerate((*WAY[:3], Sign.CUT_OFF, Sign.OPEN, Sign.CUT_OFF, Sign.OPEN), 1):
        made.see(sign, now)
    assert made.step is Step.PORT_OPEN
    assert made.waited == {Sign.CUT_OFF: 2}
    assert made.pause_s == 4 * FIRST_PAUSE_S
    made.see(Sign.TURNED_AWAY, 9)
    made.see(Sign.LET_IN, 10)
    made.see(Sign.ANSWERED, 11)
    assert made.ready
    assert made.waited == {Sign.CUT_OFF: 2, Sign.TURNED_AWAY: 1}


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.FIRST_COMMAND])
def test_a_machine_that_is_gone_is_lost_at_every_step(step):
    made = progress()
    made.step = step
    with pytest.raises(Lost, match=f"gone at the step {step!s}"):
        made.see(Sign.GONE, 1)
