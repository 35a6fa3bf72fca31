"""How much later than its first answer a sandbox is called ready stands in the report."""

from __future__ import annotations

from msgspec.structs import replace

from excise.measure.export import trial_rows
from excise.measure.record import Cell
from excise.measure.store import Study
from excise.report.orchestration import orchestration, table
from excise.report.summary import summarise

CELL = Cell(label="kubernetes", substrate="kubernetes", workload="T0")


def marked(build, block, late_ns):
    trial = build.trial(CELL, block, build.times())
    at = trial.marks["requested"]
    more = {"answered": at + 100_000_000, "ready_seen": at + 100_000_000 + late_ns}
    return replace(trial, marks={**trial.marks, **more})


def test_the_table_and_the_export_have_both_moments(build):
    trials = [marked(build, block, (block + 1) * 200_000_000) for block in range(3)]
    warm_up = replace(marked(build, 9, 10**12), warm_up=True)
    [row] = orchestration([warm_up, *trials])
    assert (row.label, row.workload, row.n) == ("kubernetes", "T0", 3)
    assert (row.answered_s, row.ready_seen_s, row.late_s) == (0.1, 0.5, 0.4)
    record, _ = build.study()
    record = replace(record, cells=(CELL,))
    shown = table(summarise(record, trials))
    assert [said.text for said in shown.rows[0]][:5] == [
        "T0",
        "kubernetes",
        "3",
        "100 ms",
        "500 ms",
    ]
    told = [r["at_ready_seen_ns"] - r["at_answered_ns"] for r in trial_rows(Study(record, trials))]
    assert told == [200_000_000, 400_000_000, 600_000_000]


def test_a_substrate_that_marks_neither_has_no_row(build):
    assert orchestration([build.trial(CELL, 0, build.times())]) == ()
