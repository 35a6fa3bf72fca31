import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tax.interval import Interval
from excise.tax.stats import ecdf, mean, paired_ratio, quantile, ranks, standing

TIMES = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("n", "q", "expected"),
    [
        (30, 0.5, (10, 21)),
        (100, 0.5, (40, 61)),
        (100, 0.9, (84, 96)),
        (100, 0.95, (90, 100)),
        (200, 0.95, (184, 197)),
        (300, 0.95, (277, 293)),
        (500, 0.95, (465, 485)),
        (500, 0.99, (490, 500)),
    ],
)
def test_the_ranks_are_those_of_the_method(n, q, expected):
    assert ranks(n, q) == expected


@pytest.mark.parametrize(("q", "least"), [(0.95, 72), (0.99, 368), (0.999, 3688)])
def test_an_upper_bound_exists_from_the_stated_number_of_trials_on(q, least):
    assert ranks(least, q)[1] == least
    assert ranks(least - 1, q)[1] is None


@given(st.integers(1, 600), st.sampled_from([0.25, 0.5, 0.9, 0.95, 0.99]))
def test_the_ranks_cover_the_quantile_as_the_binomial_says_and_are_the_narrowest_on_each_side(n, q):
    """P(X_(l) <= the quantile <= X_(u)) is P(l <= B < u) for B binomial; summed up here by hand."""
    p = [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
    low, high = ranks(n, q)
    below = sum(p[: low or 0])
    above = sum(p[high:]) if high else 0.0
    assert below <= 0.025 + 1e-9
    assert above <= 0.025 + 1e-9
    if low is not None:
        assert below + p[low] > 0.025 - 1e-9
    if high is not None:
        assert above + p[high - 1] > 0.025 - 1e-9


@pytest.mark.parametrize(
    ("n", "q", "expected"),
    [
        (0, 0.5, "none"),
        (5, 0.5, "estimate"),
        (30, 0.95, "none"),
        (40, 0.95, "bound"),
        (71, 0.95, "bound"),
        (72, 0.95, "estimate"),
        (367, 0.99, "bound"),
        (368, 0.99, "estimate"),
        (100, 0.999, "none"),
    ],
)
def test_what_may_be_printed_of_a_quantile_depends_on_the_number_of_trials(n, q, expected):
    assert standing(n, q) == expected


def test_a_quantile_is_interpolated_and_bounded_by_order_statistics():
    assert quantile(range(1, 101), 0.5) == Interval(50.5, 40, 61, n=100)


def test_failures_are_slower_than_everything_and_counted():
    found = quantile([1.0] * 96 + [math.inf] * 4, 0.95)
    assert (found.estimate, found.high, found.failures) == (1.0, math.inf, 4)
    assert quantile([1.0, math.inf], 0.5).estimate == math.inf
    assert quantile([1.0, 2.0, math.inf], 0.5).estimate == 2.0
    assert quantile([math.inf] * 8, 0.5).estimate == math.inf


@given(st.lists(TIMES, min_size=1, max_size=200), st.floats(0.01, 0.99))
def test_a_quantile_without_failures_is_numpys(values, q):
    assert quantile(values, q).estimate == pytest.approx(float(np.quantile(values, q)))


@given(st.lists(TIMES, min_size=1, max_size=60), st.integers(0, 5))
def test_a_quantiles_bounds_hold_its_estimate(values, failed):
    found = quantile([*values, *[math.inf] * failed], 0.9)
    assert found.low is None or found.low <= found.estimate
    assert found.high is None or found.estimate <= found.high


def test_order_statistics_cover_the_true_quantile_as_often_as_they_claim():
    rng = np.random.default_rng(7)
    for n, q in [(30, 0.5), (100, 0.95)]:
        true = math.exp(0.5 * {0.5: 0.0, 0.95: 1.6448536}[q])
        drawn = rng.lognormal(0, 0.5, (400, n)).tolist()
        assert sum(quantile(row, q).contains(true) for row in drawn) >= 0.93 * 400


@pytest.mark.parametrize(("n", "studies"), [(5, 200), (60, 80)])
def test_means_cover_the_true_mean_nearly_as_often_as_they_claim(n, studies):
    """A bootstrap alone would hold it in 83 % at n=5."""
    drawn = np.random.default_rng(8).lognormal(0, 0.1, (studies, n)).tolist()
    assert sum(mean(row).contains(math.exp(0.005)) for row in drawn) >= 0.9 * studies


@pytest.mark.parametrize("border", [30, 2000])
def test_one_kind_of_interval_takes_over_from_another_without_a_jump(border):
    values = np.random.default_rng(10).lognormal(0, 0.1, border).tolist()
    before, after = mean(values[:-1]), mean(values)
    width = before.high - before.low
    assert after.high - after.low == pytest.approx(width, rel=0.12)


def test_a_mean_at_cv_0_1_and_100_trials_is_known_to_two_per_cent():
    values = np.random.default_rng(9).normal(1, 0.1, 100).tolist()
    assert mean(values).relative_half_width == pytest.approx(0.02, abs=0.006)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0], Interval(2.0, None, None, n=1)),
        ([2.0, 2.0, 2.0], Interval(2.0, 2.0, 2.0, n=3)),
        ([1.0, math.inf], Interval(math.inf, None, None, n=2)),
    ],
)
def test_degenerate_means_have_no_made_up_interval(values, expected):
    assert mean(values) == expected


@pytest.mark.parametrize("broken", [[], [1.0, math.nan]])
def test_nothing_and_nan_are_refused(broken):
    for statistic in (mean, ecdf, lambda v: quantile(v, 0.5)):
        with pytest.raises(InputError, match="at least one value"):
            statistic(broken)


@pytest.mark.parametrize("q", [0.0, 1.0, 95])
def test_a_quantile_out_of_range_is_refused(q):
    with pytest.raises(InputError, match="between 0 and 1"):
        quantile([1.0], q)


@settings(max_examples=20)
@given(st.lists(TIMES, min_size=2, max_size=50))
def test_everything_is_deterministic_for_given_data(values):
    by_block = dict(enumerate(values))
    other = dict(enumerate(reversed(values)))
    assert mean(values) == mean(values)
    assert paired_ratio(by_block, other) == paired_ratio(by_block, other)


def blocks(rng, n, factor=1.0, sigma=0.1):
    common = rng.lognormal(0, 0.5, n)
    a = factor * common * rng.lognormal(0, sigma, n)
    b = common * rng.lognormal(0, sigma, n)
    return dict(enumerate(a.tolist())), dict(enumerate(b.tolist()))


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_the_ratio_of_a_substrate_to_itself_contains_one(centre):
    rng = np.random.default_rng(11)
    found = [paired_ratio(*blocks(rng, n), centre=centre) for _ in range(40) for n in (5, 50)]
    assert sum(r.contains(1.0) for r in found) >= 0.88 * 80


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_a_real_ratio_is_found_within_blocks_although_the_blocks_differ_far_more(centre):
    found = paired_ratio(*blocks(np.random.default_rng(12), 100, factor=1.2), centre=centre)
    assert found.above(1.1)
    assert found.below(1.3)


def test_a_ratio_and_its_inverse_are_inverse():
    a, b = blocks(np.random.default_rng(13), 40, factor=2.0)
    there, back = paired_ratio(a, b), paired_ratio(b, a)
    assert there.estimate == pytest.approx(1 / back.estimate)


def test_a_ratio_takes_only_blocks_where_both_came_through_and_counts_the_others():
    a = {1: 2.0, 2: 2.0, 3: math.inf, 4: 9.0}
    b = {1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0}
    assert paired_ratio(a, b) == Interval(2.0, 2.0, 2.0, n=2, failures=1)


def test_one_block_has_a_ratio_without_an_interval():
    assert paired_ratio({1: 3.0}, {1: 2.0}) == Interval(pytest.approx(1.5), None, None, n=1)


def test_a_ratio_without_common_blocks_or_of_zero_is_refused():
    with pytest.raises(InputError, match="no block has both"):
        paired_ratio({1: 1.0}, {2: 1.0})
    with pytest.raises(InputError, match="above zero"):
        paired_ratio({1: 0.0}, {1: 1.0})


@given(st.lists(TIMES, min_size=1, max_size=80), st.integers(0, 5))
def test_a_distribution_rises_to_the_share_that_came_through_within_its_band(values, failed):
    found = ecdf([*values, *[math.inf] * failed])
    assert list(found.values) == sorted(set(values))
    assert found.shares[-1] == pytest.approx(len(values) / (len(values) + failed))
    assert all(lo <= s <= hi for lo, s, hi in zip(found.low, found.shares, found.high, strict=True))
    assert found.failures == failed


def test_the_band_of_a_distribution_holds_all_of_it_as_often_as_it_claims():
    rng = np.random.default_rng(14)
    held = 0
    for _ in range(200):
        e = ecdf(rng.uniform(0, 1, 50).tolist())
        before = (0.0, *e.shares[:-1])
        eps = e.high[0] - e.shares[0]
        held += all(
            s - eps <= v <= b + eps for v, s, b in zip(e.values, e.shares, before, strict=True)
        )
    assert held >= 0.94 * 200


def test_an_interval_without_a_bound_excludes_nothing_on_that_side():
    open_ended = Interval(5.0, 3.0, None)
    assert open_ended.contains(1e9)
    assert not open_ended.contains(2.0)
    assert open_ended.above(2.0)
    assert not open_ended.below(1e9)
    assert not open_ended.bounded
    assert open_ended.relative_half_width == math.inf
    assert open_ended.scaled(2) == Interval(10.0, 6.0, None)
