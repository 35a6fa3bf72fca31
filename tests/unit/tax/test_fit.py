import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tax.fit import Timed, fit


def trials(fixed, per_action, sigma, n=50, lengths=(10, 50, 150)):
    rng = np.random.default_rng(3)
    return [
        Timed(i, k, (fixed + per_action * k) * float(rng.lognormal(0, sigma)))
        for i in range(n)
        for k in lengths
    ]


@given(st.floats(0, 100), st.floats(0.001, 10))
def test_exact_lines_are_found_exactly(fixed, per_action):
    found = fit(trials(fixed, per_action, 0.0, n=3))
    assert found.fixed_s.estimate == pytest.approx(fixed, abs=1e-6)
    assert found.per_action_s.estimate == pytest.approx(per_action, rel=1e-6)
    assert found.robust_per_action_s == pytest.approx(per_action, rel=1e-6)
    assert found.lack == pytest.approx(0, abs=1e-6)


def test_noisy_lines_are_held_by_the_intervals():
    found = fit(trials(2.0, 0.1, 0.05))
    assert found.fixed_s.contains(2.0)
    assert found.per_action_s.contains(0.1)
    assert found.robust_per_action_s == pytest.approx(0.1, rel=0.05)
    assert found.lack < 0.05
    assert found.at(100) == pytest.approx(12.0, rel=0.05)


def test_a_bent_line_shows_its_lack_of_fit():
    bent = [Timed(i, k, 1 + 0.001 * k**2) for i in range(5) for k in (10, 50, 150)]
    assert fit(bent).lack > 0.2


def test_lengths_outside_the_measured_ones_are_extrapolated():
    found = fit(trials(1, 0.1, 0.0, n=2))
    assert [found.extrapolates(k) for k in (9, 10, 100, 150, 151)] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_one_block_gives_a_line_without_intervals():
    found = fit(trials(1, 0.1, 0.0, n=1))
    assert (found.fixed_s.low, found.per_action_s.high) == (None, None)


def test_one_length_is_no_line():
    with pytest.raises(InputError, match="two different lengths"):
        fit([Timed(1, 10, 1.0), Timed(2, 10, 1.1)])


def test_failed_trials_are_refused():
    with pytest.raises(InputError, match="came through"):
        fit([Timed(1, 10, 1.0), Timed(2, 50, float("inf"))])
