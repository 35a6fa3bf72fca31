"""The books of live rollouts: nothing counts twice, everything adds up, and what is kept is bounded."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from excise.service.groups import MOST_GROUPS, Groups
from excise.service.marks import MOST_ACTIONS, ActionTimes, end_to_end
from excise.service.metrics import Histogram, Metrics, Windows
from excise.service.rollout_file import NEW, OLD, RolloutFile, lines
from excise.tax.breakdown import break_down
from excise.tax.marks import Marks

TIMES = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 500), st.one_of(st.none(), st.integers(0, 600))),
    max_size=30,
)


@given(TIMES, st.integers(0, 300), st.integers(0, 1500))
def test_however_actions_overlap_the_parts_add_up_to_the_total(found, begun, ended):
    times = ActionTimes()
    for sent, took, inside in found:
        times.add(sent, sent + took, inside, 0)
    ended = max(begun, ended)
    laid = [marks for marks, _ in end_to_end(times, begun, ended)]
    assert len(laid) == len(found)
    parts = break_down(Marks(0, 0, 0, begun, begun, tuple(laid), ended, ended + 5))
    assert parts.total_ns == ended + 5
    assert parts.acting_ns <= ended - begun
    spans = [(m.sent_ns, m.received_ns) for m in laid]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


@given(TIMES)
def test_actions_one_after_the_other_are_left_as_they_are(found):
    times, at, wanted = ActionTimes(), 0, []
    for gap, took, inside in found:
        sent = at + gap
        at = sent + took
        held = None if inside is None else min(inside, took)
        times.add(sent, at, held, 3)
        wanted.append((sent, at, held))
    laid = end_to_end(times, 0, at)
    assert [(m.sent_ns, m.received_ns, m.inside_ns) for m, _ in laid] == wanted
    assert all(code == 3 for _, code in laid)


def test_a_rollout_without_end_is_kept_within_bounds():
    times = ActionTimes()
    for number in range(MOST_ACTIONS + 10):
        times.add(number, number, None, 0)
    assert (len(times), times.dropped) == (MOST_ACTIONS, 10)


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_quantile_is_within_one_bucket_of_the_true_one(values, share):
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    found = histogram.quantile_ns(share)
    true = sorted(values)[max(0, -(-round(share * len(values) * 1000) // 1000) - 1)]
    if 10_000 <= true <= 6e11:
        assert true / 1.7 <= found <= true * 1.7
    text = list(histogram.lines("x", {}))
    counts = [int(line.rpartition(" ")[2]) for line in text if "bucket" in line]
    assert counts == sorted(counts)
    assert counts[-1] == len(values)


def test_windows_forget_and_labels_are_escaped():
    windows = Windows(every_ns=10, kept=3)
    for at in range(100):
        windows.add(at, at)
    assert [begun for begun, *_ in windows.series()] == [70, 80, 90]
    metrics = Metrics()
    metrics.failed('quo"te\\\n', None)
    assert 'kind="quo\\"te\\\\\\n"' in metrics.exposition([])


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 100), st.booleans()), min_size=1, max_size=9
    )
)
def test_a_batch_waits_for_its_last_and_loses_all_when_one_is_lost(members):
    groups = Groups()
    for _ in members:
        groups.begin("alice", "g")
    settled = None
    for ended, spent, failed in members:
        assert settled is None
        settled = groups.end("alice", "g", ended, spent, failed=failed)
    last = max(ended for ended, *_ in members)
    assert settled.straggler_ns == sum(last - ended for ended, *_ in members)
    lost = sum(spent for _, spent, _ in members) if any(f for *_, f in members) else 0
    assert settled.lost_ns == lost
    assert len(groups) == 0
    assert groups.end("bob", "g", 0, 0, failed=False) is None


@given(st.lists(st.integers(0, 100), min_size=1, max_size=9), st.integers(0, 9))
def test_who_never_came_is_the_loss_of_all_the_others(spent, when):
    groups = Groups()
    for number in range(len(spent)):
        if number == when:
            groups.lose("alice", "g")
        groups.begin("alice", "g")
    if when >= len(spent):
        groups.lose("alice", "g")
    *_, settled = (groups.end("alice", "g", 0, each, failed=False) for each in spent)
    assert settled.lost_ns == sum(spent)
    assert settled.rollouts == len(spent)


def test_open_groups_are_bounded():
    groups = Groups()
    for number in range(MOST_GROUPS + 5):
        (groups.begin if number % 2 else groups.lose)("alice", str(number))
    assert len(groups) == MOST_GROUPS


def test_the_file_of_rollouts_is_bounded_and_a_torn_line_is_cut_off(tmp_path: Path):
    file = RolloutFile(tmp_path, most=100)
    for number in range(50):
        file.append(b"%09d\n" % number)
    file.close()
    kept = [int(line) for line in lines(tmp_path)]
    assert kept == list(range(kept[0], 50))
    assert (tmp_path / NEW).stat().st_size + (tmp_path / OLD).stat().st_size <= 200
    with (tmp_path / NEW).open("ab") as torn:
        torn.write(b"half a li")
    again = RolloutFile(tmp_path, most=1000)
    again.append(b"000000050\n")
    again.close()
    assert [int(line) for line in lines(tmp_path)] == [*kept, 50]
