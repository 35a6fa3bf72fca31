import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from excise.errors import InputError
from excise.tax.sessions import over_sessions

TIMES = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)


def test_the_interval_is_students_over_the_sessions_and_not_over_the_trials():
    sessions = {1: [1.0] * 100, 2: [1.1] * 100, 3: [1.2] * 100}
    found = over_sessions(sessions)
    logs = np.log([1.0, 1.1, 1.2])
    low, high = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    assert found.ratio.n == 3
    assert (found.ratio.low, found.ratio.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.by_session == pytest.approx((1.0, 1.1, 1.2))
    assert found.between == pytest.approx(logs.std(ddof=1))
    assert found.within == pytest.approx(0.0)


def test_sessions_that_differ_no_more_than_their_trials_have_no_spread_of_their_own():
    rng = np.random.default_rng(1)
    found = over_sessions({s: list(np.exp(rng.normal(0, 0.1, 400))) for s in range(6)})
    assert found.within == pytest.approx(0.1, rel=0.1)
    assert found.between < 0.02


def test_one_session_has_no_interval():
    found = over_sessions({1: [2.0, 2.0]})
    assert (found.ratio.estimate, found.ratio.low, found.ratio.high) == (
        pytest.approx(2),
        None,
        None,
    )


def test_failures_are_left_out_and_nothing_is_refused():
    assert over_sessions({1: [2.0, math.inf], 2: [math.inf]}).by_session == pytest.approx((2.0,))
    with pytest.raises(InputError, match="no session"):
        over_sessions({1: [math.inf]})


@given(st.dictionaries(st.integers(0, 9), TIMES, min_size=1), st.floats(0.1, 10))
def test_another_unit_scales_the_estimate_and_leaves_the_spreads(sessions, factor):
    one = over_sessions(sessions)
    other = over_sessions({s: [v * factor for v in values] for s, values in sessions.items()})
    assert other.ratio.estimate == pytest.approx(one.ratio.estimate * factor)
    assert (other.between, other.within) == pytest.approx((one.between, one.within), abs=1e-6)
