"""What a pool took to be ready stands in the report, beside what its rollouts found done."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from excise.measure.export import trial_rows
from excise.measure.record import Cell, Readied
from excise.measure.store import Study
from excise.report.readiness import readiness
from excise.report.readiness_table import readiness as table
from excise.report.summary import summarise
from excise.report.units import NONE

LABEL = "jail+pool:state=exact"
CELL = Cell(label=LABEL, substrate="jail+pool", workload="T0")


@pytest.fixture
def trials(build):
    told = [Readied(spent_s=0.002 * block, saved_s=0.5, idle_s=1.0) for block in range(4)]
    return [
        replace(build.trial(CELL, block, build.times()), readied=one)
        for block, one in enumerate(told)
    ]


def test_means_are_of_all_trials_but_warm_ups(trials):
    warm_up = replace(trials[0], warm_up=True, readied=Readied(spent_s=99.0, saved_s=0.0))
    [row] = readiness([warm_up, *trials])
    assert (row.label, row.workload, row.n) == (LABEL, "T0", 4)
    assert (row.spent_s, row.saved_s, row.idle_s) == (0.003, 0.5, 1.0)


def test_substrates_that_make_nothing_ready_have_no_row(build):
    assert readiness([build.trial(CELL, 0, build.times())]) == ()


def test_loads_have_rows_of_their_own(trials):
    loaded = [replace(t, cell=f"{CELL.name}@burst:4", load="burst:4") for t in trials]
    assert [r.load for r in readiness([*trials, *loaded])] == ["", "burst:4"]
    assert {r.label for r in readiness(loaded)} == {LABEL}


def test_the_table_and_the_export_have_it(build, trials):
    record, _ = build.study()
    record = replace(record, cells=(CELL,))
    shown = table(summarise(record, trials))
    assert [said.text for said in shown.rows[0]] == [
        "T0", LABEL, NONE, "4", "3.00 ms", "1.00 s", "500 ms",
    ]  # fmt: skip
    assert {row["readied_saved_s"] for row in trial_rows(Study(record, trials))} == {0.5}
