"""What a tool adds is the difference to the substrate below it, on the same workload."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from excise.measure import synthetic as written
from excise.report.adapter_tables import adapters
from excise.report.summary import summarise
from excise.substrates.fake import Latencies


def test_what_a_tool_adds_stands_beside_the_substrate_below_it(tmp_path: Path) -> None:
    quick = written.Drawn(Latencies(create_s=0.1, run_s=0.01), spread=0.0)
    slow = written.Drawn(Latencies(create_s=0.3, run_s=0.05), spread=0.0)
    drawn = {
        "bare": written.SUBSTRATES["bare"],
        "docker": quick,
        "docker@tool": slow,
        "vm@tool": slow,
    }
    found = written.synthetic(tmp_path / "study", substrates=drawn, workloads=("K10:attrs-1417",))
    cells = tuple(
        replace(c, substrate=c.label.replace("bare", "local")) for c in found.record.cells
    )
    (row,) = adapters(summarise(replace(found.record, cells=cells), found.trials)).rows
    assert [said.text for said in row[:3]] == ["docker", "tool", "K10:attrs-1417"]
    assert row[3].text == "+240 ms"  # 200 to create and 40 for the first answer
    assert row[4].text == "+40.0 ms"
    hours = float(row[5].text.removeprefix("+").removesuffix(" h").replace(",", ""))
    assert hours == pytest.approx((0.2 + 11 * 0.04) * 1e6 / 3600, rel=0.02)
