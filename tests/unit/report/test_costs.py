"""What a hosted sandbox's trials cost, from the dated price file."""

from __future__ import annotations

import dataclasses

import pytest

from excise.report.scale_tables import costs
from excise.report.summary import summarise
from excise.tax import prices


def test_a_price_names_the_substrates_that_are_bought_there_each_once():
    bought = [name for price in prices.latest().price for name in price.substrates]
    assert sorted(bought) == ["daytona", "e2b"]


def test_a_trial_is_billed_from_create_to_destroy_at_the_studys_size(build):
    summary = summarise(*build.study(("bare", "docker"), ("T0",), blocks=3))
    assert costs(summary).rows == ()
    cells = tuple(dataclasses.replace(c, substrate="e2b") for c in summary.cells)
    hosted = dataclasses.replace(
        summary, cells=cells, limits={"cpus": 8.0, "memory_bytes": 4 * 1024**3}
    )
    row = costs(hosted).rows[-1]
    held_s = cells[-1].total_mean.estimate
    assert row[1].text == "docker"
    assert float(row[3].text.strip("$ USD").replace(",", "")) == pytest.approx(
        1000 * 0.468 * held_s / 3600, rel=0.01
    )
