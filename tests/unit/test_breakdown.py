"""Equation (1'): the components of any trial add up to its total, and contradictions are refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.tax.breakdown import CLIP_NS, ConservationError, break_down
from excise.tax.marks import ActionMarks, Marks

NS = st.integers(0, 10**13)


@st.composite
def trials(draw, inside=True):
    """Marks of a trial in an order that can be."""
    count = draw(st.integers(0, 6))
    times = sorted(draw(st.lists(NS, min_size=7 + 2 * count, max_size=7 + 2 * count)))
    acts = times[5 : 5 + 2 * count]
    actions = []
    for sent, received in zip(acts[::2], acts[1::2], strict=True):
        x = draw(st.integers(0, received - sent)) if inside else None
        actions.append(ActionMarks(sent, received, x))
    tail = times[5 + 2 * count :]
    return Marks(*times[:5], tuple(actions), *tail)


@given(trials())
def test_components_add_up_exactly(marks):
    b = break_down(marks)
    split = b.dispatch_ns + b.inside_ns
    parts = (b.queue_ns, b.create_ns, b.ready_ns, b.set_up_ns, split, b.gap_ns, b.cleanup_ns)
    assert sum(parts) == b.total_ns == marks.gone_ns - marks.due_ns
    assert min(parts) >= 0
    assert split == b.acting_ns
    assert b.clipped == 0


@given(trials(inside=False))
def test_without_inside_times_nothing_is_made_up(marks):
    b = break_down(marks)
    if marks.actions:
        assert b.dispatch_ns is None
        assert b.inside_ns is None
    total = b.queue_ns + b.create_ns + b.ready_ns + b.set_up_ns + b.acting_ns + b.gap_ns
    assert total + b.cleanup_ns == b.total_ns


@given(trials(), st.data())
def test_marks_that_run_backwards_are_refused(marks, data):
    order = marks.in_order()
    steps = [i for i, (a, b) in enumerate(pairwise(order)) if b > a]
    if not steps or marks.actions:
        return
    fields = ("due_ns", "requested_ns", "created_ns", "ready_ns", "set_up_ns", "teardown_ns")
    at = data.draw(st.sampled_from(steps))
    values = {f: getattr(marks, f) for f in (*fields, "gone_ns")}
    names = list(values)
    values[names[at]], values[names[at + 1]] = values[names[at + 1]], values[names[at]]
    with pytest.raises(ConservationError, match="backwards"):
        break_down(Marks(actions=(), **values))


def one_action(inside_ns, bound_ns):
    action = ActionMarks(100, 100 + bound_ns, inside_ns)
    return Marks(0, 0, 10, 20, 30, (action,), 200 + bound_ns, 300 + bound_ns)


@given(st.integers(1, CLIP_NS), st.integers(0, 10**9))
def test_a_small_excess_of_two_clocks_is_clipped_and_counted(excess, bound):
    above, below = break_down(one_action(bound + excess, bound)), break_down(one_action(-excess, 9))
    assert (above.inside_ns, above.dispatch_ns, above.clipped) == (bound, 0, 1)
    assert (below.inside_ns, below.dispatch_ns, below.clipped) == (0, 9, 1)


@given(st.integers(CLIP_NS + 1, 10**12), st.integers(0, 10**9))
def test_a_large_excess_fails_the_trial(excess, bound):
    for inside in (bound + excess, -excess):
        with pytest.raises(ConservationError, match="does not fit"):
            break_down(one_action(inside, bound))
