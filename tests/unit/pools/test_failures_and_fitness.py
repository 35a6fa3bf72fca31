"""What fails is tried later and later; what is in doubt is not handed out; creation is no stampede."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.pools.counts import Acquired, Counts, Got, exposition
from excise.pools.failures import Retries, failed
from excise.pools.fitness import Life, Trust, Verdict, after_use, before_use
from excise.pools.window import Window

ERROR = RuntimeError("written down to fail")


def after(failures, *, retryable, rules):
    state, pauses = None, []
    for now_s in itertools.accumulate([0.0] * failures):
        state = failed(state, ERROR, key="k", retryable=retryable, now_s=now_s, rules=rules)
        pauses.append(state.not_before_s - now_s)
    return state, pauses


def test_pauses_double_until_patience_ends():
    state, pauses = after(4, retryable=True, rules=Retries(attempts=4, first_s=1.0))
    assert all(0.75 * 2**i <= p <= 2**i for i, p in enumerate(pauses[:3]))
    assert state.poisoned
    assert 0.75 * 30 <= pauses[3] <= 30


@given(st.integers(1, 200), st.booleans())
def test_no_pause_is_longer_than_the_longest(count, retryable):
    rules = Retries()
    _, pauses = after(count, retryable=retryable, rules=rules)
    assert all(0 < p <= rules.most_poison_s for p in pauses)


def test_what_no_retry_mends_is_poisoned_at_once_and_asked_again_later():
    state, _ = after(1, retryable=False, rules=Retries())
    assert state.refuses(1.0)
    assert not state.refuses(31.0)
    assert state.error is ERROR


def test_between_retries_nobody_is_refused():
    state, _ = after(1, retryable=True, rules=Retries())
    assert state.barred(0.0)
    assert not state.refuses(0.0)


def test_what_failed_together_is_not_retried_together():
    when = {failed(None, ERROR, key=k, retryable=True, now_s=0).not_before_s for k in "abcdef"}
    assert len(when) > 1


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 5))
def test_what_is_in_doubt_is_destroyed_whatever_else_is_true(proved_s, now_s, uses):
    life = Life(0.0, proved_s, uses, doubt="the probe failed")
    assert before_use(life, now_s, Trust()) is Verdict.DESTROY
    assert after_use(life, now_s, Trust(), resettable=True) is Verdict.DESTROY


def test_a_proof_that_has_grown_old_is_renewed_before_the_hand_out():
    trust = Trust(proof_s=10.0)
    assert before_use(Life(0.0, 0.0), 9.9, trust) is Verdict.TRUST
    assert before_use(Life(0.0, 0.0), 10.0, trust) is Verdict.PROVE
    assert before_use(Life(0.0, 3599.0), 3600.0, trust) is Verdict.DESTROY


def test_after_its_last_use_a_sandbox_goes():
    trust = Trust(uses=2)
    assert after_use(Life(0.0, 0.0, uses=1), 1.0, trust, resettable=True) is Verdict.RESET
    assert after_use(Life(0.0, 0.0, uses=2), 1.0, trust, resettable=True) is Verdict.DESTROY
    assert after_use(Life(0.0, 0.0, uses=1), 1.0, trust, resettable=False) is Verdict.DESTROY


@given(st.integers(1, 64), st.lists(st.booleans(), max_size=200))
def test_the_window_stays_between_one_and_its_most(most, history):
    window = Window(most)
    for i, well in enumerate(history):
        window = window.went_well() if well else window.choked(i, i)
        assert 1 <= int(min(window.size, most)) <= most
        assert window.room(0) >= 1
        assert window.room(most) == 0


def test_one_overload_cuts_once_however_many_it_hits():
    window = Window(32, size=16.0)
    for _ in range(16):
        window = window.choked(begun_s=1.0, now_s=5.0)
    assert window.size == 8.0
    assert window.choked(begun_s=5.0, now_s=9.0).size == 4.0


def test_a_window_that_went_well_for_a_round_has_grown_by_about_one():
    window = Window(32, size=8.0)
    for _ in range(8):
        window = window.went_well()
    assert 8.9 < window.size < 9.0


@pytest.mark.parametrize(
    "wrong", [lambda: Window(0), lambda: Retries(attempts=0), lambda: Trust(uses=0)]
)
def test_rules_under_which_nothing_works_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_the_numbers_are_told_in_the_text_that_prometheus_reads():
    counts = Counts()
    counts.add(Acquired(Got.EXACT, "kept ready", 0.25, 3.0, 4, 4))
    counts.add(Acquired(Got.MISS, "nothing idle", 0.75, 0.0, 0, 4))
    counts.failures["create"] += 2
    text = exposition(counts, {"idle": 3}, pool='a "pool"')
    assert 'excise_pool_acquired_total{pool="a \\"pool\\"",got="exact"} 1' in text
    assert 'excise_pool_acquired_total{pool="a \\"pool\\"",got="partial"} 0' in text
    assert 'excise_pool_waited_seconds_total{pool="a \\"pool\\""} 1' in text
    assert 'excise_pool_failures_total{pool="a \\"pool\\"",phase="create"} 2' in text
    assert 'excise_pool_idle{pool="a \\"pool\\""} 3' in text
    assert text.count("# TYPE") == len(
        {line.split()[2] for line in text.splitlines() if "TYPE" in line}
    )


def test_an_acquire_says_what_it_got_and_why():
    assert str(Acquired(Got.PARTIAL, "same image", 0.5, 2.0, 2, 4)) == (
        "partial (2 of 4 stages) after 0.5 s: same image; saved 2 s"
    )
