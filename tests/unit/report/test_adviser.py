"""What stands between code and host, beside the figures, and what an adviser is given of each substrate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.measure import synthetic as written
from excise.report.adviser import inputs
from excise.report.summary import summarise
from excise.report.tables import isolation, main
from excise.report.values import Summary
from excise.report.write import write_report
from excise.substrates.isolation import LEVELS, level_of, word_for
from excise.types import Isolation


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("written") / "study"
    found = written.synthetic(folder, workloads=("T0",), loads=("burst:8",))
    found.record.substrates["vm"]["isolation"] = "vm"
    return summarise(found.record, found.trials)


def test_every_level_has_its_words_and_is_found_by_its_name() -> None:
    assert set(LEVELS) == set(Isolation)
    assert all(level_of(word_for(level)) is level for level in Isolation)
    assert level_of("not known") is None


def test_isolation_stands_beside_the_figures_and_in_a_table_of_its_own(summary: Summary) -> None:
    table = main(summary)
    at = table.columns.index("isolation")
    assert [(row[0].text, row[at].text) for row in table.rows] == [
        ("bare", "none"),
        ("container", "none"),
        ("vm", "vm"),
    ]
    words = {row[0].text: row[2].text for row in isolation(summary).rows}
    assert words["vm"] == LEVELS[Isolation.VM].between


def test_an_adviser_is_given_figures_of_every_substrate(summary: Summary) -> None:
    by_label = {each.label: each for each in inputs(summary)}
    assert list(by_label) == ["bare", "container", "vm"]
    found = by_label["vm"]
    assert (found.isolation, found.settings) == ("vm", {"synthetic": "yes"})
    (paid,) = found.paid
    assert paid.workload == "T0"
    assert paid.fixed_s == pytest.approx(8.0, rel=0.3)  # 2.1 to create, 5.5 until ready, 0.4 to go
    (burst,) = found.bursts
    assert (burst.load, burst.asked) == ("burst:8", 8)
    assert burst.memory_each_bytes is not None
    assert burst.memory_each_bytes >= 0


def test_each_of_them_is_a_document_of_its_own(summary: Summary, tmp_path: Path) -> None:
    write_report(summary, tmp_path, ("md",))
    found = sorted((tmp_path / "adviser").iterdir())
    assert [path.name for path in found] == ["bare.json", "container.json", "vm.json"]
    document = json.loads(found[1].read_text())
    assert document["format"] == 1
    assert document["paid"][0]["tti_p50_s"]["estimate"] > 0.1
