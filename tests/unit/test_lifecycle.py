"""The lifecycle is a table: what it allows, and that nothing gets around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import LifecycleError
from excise.lifecycle import TABLE, Event, State, step


@given(st.sampled_from(State), st.sampled_from(Event))
def test_a_step_is_in_the_table_or_says_what_is_allowed(state, event):
    if (state, event) in TABLE:
        assert step(state, event) is TABLE[state, event]
        return
    with pytest.raises(LifecycleError) as error:
        step(state, event)
    assert all(allowed in str(error.value) for (s, allowed) in TABLE if s is state)


@given(st.lists(st.sampled_from(Event)))
def test_no_walk_leaves_the_end_or_acts_after_it(events):
    state, gone = State.NEW, False
    for event in events:
        try:
            state = step(state, event)
        except LifecycleError:
            continue
        if gone:
            assert (state, event) == (State.GONE, Event.DESTROY)
        gone = gone or state is State.GONE


def test_from_every_state_that_holds_a_sandbox_destroying_is_at_most_one_failure_away():
    for state in State:
        if state is State.NEW:
            continue
        ways = {state, TABLE.get((state, Event.FAIL)), TABLE.get((state, Event.OBSERVE))} - {None}
        assert any(TABLE.get((way, Event.DESTROY)) is State.GONE for way in ways)


def test_a_broken_sandbox_can_only_fail_again_or_be_destroyed():
    assert {event for (state, event) in TABLE if state is State.BROKEN} == {
        Event.FAIL,
        Event.DESTROY,
    }
