import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tax.breakdown import break_down
from excise.tax.marks import ActionMarks, Marks
from excise.tax.split import Baseline, Work, split

SPAN = st.integers(0, 10**12)


@st.composite
def rollouts(draw, actions=None, inside=None):
    """Any marks that could have been taken; inside times known for all actions or for none."""
    count = draw(st.integers(0, 6)) if actions is None else actions
    timed = draw(st.booleans()) if inside is None else inside
    now = draw(SPAN)
    head = [now := now + draw(SPAN) for _ in range(4)]
    set_up_sent = now
    now += draw(SPAN)
    set_up = (ActionMarks(set_up_sent, now, draw(st.integers(0, now - set_up_sent))),)
    now += draw(SPAN)
    ready = now
    acts = []
    for _ in range(count):
        sent = now + draw(SPAN)
        now = sent + draw(SPAN)
        acts.append(ActionMarks(sent, now, draw(st.integers(0, now - sent)) if timed else None))
    teardown = now + draw(SPAN)
    return Marks(
        due_ns=head[0],
        requested_ns=head[1],
        created_ns=head[2],
        ready_ns=head[3],
        set_up_ns=ready,
        actions=tuple(acts),
        teardown_ns=teardown,
        gone_ns=teardown + draw(SPAN),
        set_up_actions=set_up if draw(st.booleans()) else (),
    )


@given(st.data())
def test_work_and_tax_are_the_total_without_the_harness_to_the_nanosecond(data):
    trial = data.draw(rollouts())
    works = data.draw(st.lists(SPAN, min_size=len(trial.actions), max_size=len(trial.actions)))
    parts = split(trial, Work(tuple(works), data.draw(SPAN), same_block=True))
    assert parts.work_ns + parts.tax_ns == parts.total_ns - parts.gap_ns
    assert parts.total_ns == break_down(trial).total_ns


@given(st.data())
def test_dispatch_and_slowdown_are_the_tax_on_actions_or_unknown_together(data):
    trial = data.draw(rollouts(actions=3))
    parts = split(trial, Work((1, 2, 3), 0, same_block=True))
    if trial.actions[0].inside_ns is None:
        assert (parts.dispatch_ns, parts.slowdown_ns, parts.slowdown) == (None, None, None)
    else:
        assert parts.dispatch_ns + parts.slowdown_ns == parts.action_tax_ns


@given(rollouts(actions=3, inside=True))
def test_a_bare_trial_measured_against_itself_pays_only_its_dispatch(bare):
    parts = split(bare, Baseline({1: [bare]}).work(1))
    assert parts.slowdown_ns == 0
    assert parts.action_tax_ns == parts.dispatch_ns


def marks(durations, inside=None, set_up=0):
    now, acts = 100 + set_up, []
    for i, d in enumerate(durations):
        acts.append(ActionMarks(now, now + d, inside[i] if inside else None))
        now += d
    return Marks(
        due_ns=0,
        requested_ns=10,
        created_ns=60,
        ready_ns=100,
        set_up_ns=100 + set_up,
        actions=tuple(acts),
        teardown_ns=now,
        gone_ns=now + 5,
    )


def test_a_written_down_trial_is_split_as_by_hand():
    parts = split(marks([30, 50], [20, 45], set_up=40), Work((15, 40), 30, same_block=True))
    assert (parts.queue_ns, parts.create_ns, parts.ready_ns, parts.cleanup_ns) == (10, 50, 40, 5)
    assert (parts.set_up_tax_ns, parts.dispatch_ns, parts.slowdown_ns) == (10, 15, 10)
    assert (parts.work_ns, parts.tax_ns) == (85, 140)
    assert parts.ratio == pytest.approx(140 / 85)
    assert parts.slowdown == pytest.approx(65 / 55)


def test_work_is_the_median_over_the_bare_trials_of_the_same_block():
    baseline = Baseline(
        {1: [marks([10, 100]), marks([30, 100]), marks([20, 400])], 2: [marks([1000, 1000])]}
    )
    assert baseline.work(1) == Work((20, 100), 0, same_block=True)
    assert baseline.work(2) == Work((1000, 1000), 0, same_block=True)


def test_a_block_without_a_bare_trial_borrows_from_all_and_says_so():
    baseline = Baseline({1: [marks([10])], 2: [marks([30])], 3: []})
    assert baseline.work(3) == Work((20,), 0, same_block=False)
    assert not split(marks([50]), baseline.work(9)).same_block


def test_work_is_what_was_timed_inside_the_bare_process():
    assert Baseline({1: [marks([10], [7])]}).work(1).actions_ns == (7,)


def test_a_set_up_without_commands_counts_as_a_whole():
    assert Baseline({1: [marks([10], set_up=33)]}).work(1).set_up_ns == 33


def test_without_work_the_ratio_is_infinite():
    assert split(marks([]), Work((), 0, same_block=True)).ratio == float("inf")


def test_a_baseline_of_another_length_is_refused():
    with pytest.raises(InputError, match="2 actions has no baseline of 1"):
        split(marks([1, 2]), Work((1,), 0, same_block=True))
    with pytest.raises(InputError, match="differ in length"):
        Baseline({1: [marks([1]), marks([1, 2])]})


def test_no_bare_trial_is_refused():
    with pytest.raises(InputError, match="add the bare cell"):
        Baseline({1: []})
