"""Numbers get their digits and units in one place, and bounds stay bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.report import units
from excise.tax.interval import Interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0000123, "12.3 µs"),
        (0.00123, "1.23 ms"),
        (0.1234, "123 ms"),
        (0.9996, "1,000 ms"),
        (1.234, "1.23 s"),
        (123.4, "123 s"),
        (12345.6, "12,346 s"),
        (-0.0000218, "-21.8 µs"),
        (math.inf, "never"),
        (None, "not known"),
    ],
)
def test_seconds_read_in_their_unit(value, text) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.0123, 0.0119, 0.0128), "12.3 [11.9, 12.8] ms"),
        (Interval(0.0123, None, None), "12.3 ms"),
        (Interval(0.0123, 0.0119, None), "≥ 11.9 ms"),
        (Interval(0.0123, 0.0119, math.inf), "12.3 [11.9, ∞] ms"),
        (Interval(math.inf, 0.0119, None), "≥ 11.9 ms"),
        (Interval(math.inf, None, None), "never"),
        (Interval(math.inf, math.inf, None), "never"),
        (Interval(1.0, math.nan, math.nan), "1.00 s"),
        (None, "\N{EN DASH}"),
    ],
)
def test_an_interval_has_one_unit_and_a_bound_alone_is_printed_as_a_bound(interval, text) -> None:
    assert units.seconds_interval(interval) == text


def test_hours_shares_ratios_and_money_have_their_signs() -> None:
    assert units.hours(4166.67) == "4,167 h"
    assert units.share(0.6084) == "60.8 %"
    assert (
        units.ratio_interval(Interval(1.8185, 1.7, 1.9))
        == "1.82 [1.70, 1.90]\N{MULTIPLICATION SIGN}"
    )
    assert units.dollars(524.7) == "525 USD"
    assert units.count(1_000_000) == "1M"


@given(st.floats(1e-9, 1e9))
def test_what_is_printed_is_within_half_a_percent_or_a_unit(value: float) -> None:
    text = units.plain(value).replace(",", "")
    assert float(text) == pytest.approx(value, rel=0.06) or abs(float(text) - value) <= 0.5


def test_a_tally_always_says_how_many_failed() -> None:
    assert units.tally(30, 0) == "n=30"
    assert units.tally(30, 2) == "n=30, 2 failed"


def test_kinds_of_failures_are_counted_in_words():
    said = units.failures({"substrate_error": 2, "mismatch": 3, "timeout": 1, "conservation": 2})
    assert said == "2 substrate errors\n3 mismatches\n1 timeout\n2 conservation"
