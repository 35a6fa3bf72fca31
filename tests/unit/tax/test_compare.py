import math

import numpy as np
import pytest
from scipy import stats

from excise.errors import InputError
from excise.tax.compare import companions, drift, extremes, holm, ratio_of_quantiles


def lognormal(seed, n=60, centre=1.0, sigma=0.2):
    drawn = np.random.default_rng(seed).lognormal(math.log(centre), sigma, n)
    return dict(enumerate(drawn.tolist()))


def test_companions_of_a_clear_difference_point_the_same_way():
    found = companions(lognormal(1, centre=2.0), lognormal(2, centre=1.0))
    assert found.cliffs_delta > 0.9
    assert found.shift.above(0.8)
    assert found.mann_whitney_p < 1e-6
    assert found.wilcoxon_p < 1e-6


def test_companions_of_equals_see_nothing():
    a = lognormal(3)
    found = companions(a, a)
    assert (found.cliffs_delta, found.wilcoxon_p) == (0.0, 1.0)
    assert found.shift.estimate == 0.0
    assert found.mann_whitney_p > 0.9


def test_companions_of_constants_do_not_fail():
    found = companions({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0})
    assert (found.mann_whitney_p, found.wilcoxon_p, found.cliffs_delta) == (1.0, 1.0, 0.0)


def test_cliffs_delta_counts_a_failure_as_slowest():
    found = companions({1: 1.0, 2: math.inf}, {1: 2.0, 2: 3.0})
    assert found.cliffs_delta == 0.0
    assert found.shift.failures == 1


def test_the_shift_is_the_median_of_walsh_averages():
    a, b = {1: 3.0, 2: 5.0, 3: 10.0}, {1: 1.0, 2: 1.0, 3: 1.0}
    walsh = [(x + y) / 2 for i, x in enumerate((2, 4, 9)) for y in (2, 4, 9)[i:]]
    assert companions(a, b).shift.estimate == pytest.approx(np.median(walsh))


def test_wilcoxon_is_scipys():
    a, b = lognormal(5), lognormal(6)
    differences = np.array(list(a.values())) - np.array(list(b.values()))
    expected = stats.wilcoxon(differences, method="asymptotic").pvalue
    assert companions(a, b).wilcoxon_p == pytest.approx(expected)


def test_holm_multiplies_the_smallest_by_the_family_and_never_falls():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_the_ratio_of_tails_is_called_approximate_and_finds_a_doubled_tail():
    found = ratio_of_quantiles(lognormal(7, 200, centre=2.0), lognormal(8, 200))
    assert found.approximate
    assert found.above(1.5)
    assert found.below(2.7)


def test_the_ratio_of_a_tail_to_itself_is_one():
    a = lognormal(9)
    found = ratio_of_quantiles(a, a)
    assert (found.low, found.estimate, found.high) == (1.0, 1.0, 1.0)


def test_slowest_over_fastest_is_selected_anew_in_every_resample():
    equal = {name: lognormal(seed) for seed, name in enumerate("abcd", 20)}
    found = extremes(equal)
    assert found.ratio.low >= 1.0
    assert found.same_pair < 0.95
    apart = {"a": lognormal(30), "b": lognormal(31, centre=10.0), "c": lognormal(32, centre=3.0)}
    clear = extremes(apart)
    assert (clear.slowest, clear.fastest, clear.same_pair) == ("b", "a", 1.0)
    assert clear.ratio.contains(10.0)


def test_extremes_use_only_blocks_in_which_all_came_through():
    found = extremes({"a": {1: 1.0, 2: 2.0, 3: 1.0}, "b": {1: 4.0, 2: math.inf, 3: 4.0, 4: 9.0}})
    assert (found.ratio.estimate, found.ratio.n, found.ratio.failures) == (4.0, 2, 1)


def test_one_substrate_has_no_extremes():
    with pytest.raises(InputError, match="at least two"):
        extremes({"a": {1: 1.0}})


def test_extremes_without_a_common_block_are_refused():
    with pytest.raises(InputError, match="blocks"):
        extremes({"a": {1: 1.0}, "b": {2: 1.0}})


def test_a_drift_is_seen_and_its_absence_too():
    steady = list(lognormal(40, 200).values())
    assert drift(steady).contains(1.0)
    risen = [v * (1.5 if i >= 100 else 1.0) for i, v in enumerate(steady)]
    assert drift(risen).above(1.2)


def test_two_trials_have_a_drift_without_bounds():
    found = drift([1.0, 2.0])
    assert (found.estimate, found.low, found.high) == (2.0, None, None)
    with pytest.raises(InputError, match="at least two"):
        drift([1.0])


def test_extremes_of_means_see_what_medians_do_not():
    seconds = {"a": dict(enumerate([1.0, 1.0, 7.0])), "b": dict(enumerate([2.0, 2.0, 2.0]))}
    assert extremes(seconds).ratio.estimate == 2.0
    assert extremes(seconds, centre="mean").ratio.estimate == pytest.approx(1.5)
