"""The convention that every benchmark follows."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from bench.__main__ import DOCUMENT, MARK, Taken, _as_json, _host, _refresh, _take, _today, names
from bench.convention import Row, Sample, interleaved


def row(value: float, *, higher: bool = False) -> Row:
    return Row("promise", value, "baseline", 1.2, 1.05, 3, 10.0, 12.0, higher)


def test_a_row_holds_when_its_ratio_is_within_reach() -> None:
    assert row(1.2).ok
    assert not row(1.21).ok


def test_a_row_where_more_is_better_holds_above_reach() -> None:
    assert row(1.3, higher=True).ok
    assert not row(1.1, higher=True).ok


def test_the_json_object_has_the_agreed_fields() -> None:
    made = _as_json("overhead", Taken([row(1.0)]))
    assert set(made) == {"name", "host", "date", "rows"}
    [only] = made["rows"]
    assert set(only) == {
        "name", "value", "baseline", "reach", "aim", "ok", "n", "p50_us", "p95_us",
    }  # fmt: skip


def test_candidates_are_interleaved_and_warm_ups_not_counted() -> None:
    order: list[str] = []
    taken = interleaved(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=4, warm_ups=1
    )
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]
    assert {len(s.times_us) for s in taken.values()} == {4}


def test_the_p95_of_a_sample_lies_at_its_end() -> None:
    sample = Sample(tuple(float(i) for i in range(1, 101)))
    assert sample.p50_us == 50.5
    assert 95 <= sample.p95_us <= 96


def test_the_table_in_the_docs_is_replaced_as_a_whole_with_host_and_date(tmp_path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Benchmarks\n\nWhat this is.\n\n{MARK}\n\n| old |\n")
    _refresh({"overhead": Taken([row(1.0), row(9.0)])}, page)
    once = page.read_text()
    _refresh({"overhead": Taken([row(1.0), row(9.0)])}, page)
    assert page.read_text() == once
    assert once.startswith("# Benchmarks\n\nWhat this is.\n\n")
    assert "old" not in once
    assert f"Taken on {_today()}, {_host()}." in once
    assert once.count("| promise | 1 |") == 1
    assert once.count("| NO |") == 1
    assert MARK in DOCUMENT.read_text()


def test_every_benchmark_is_found() -> None:
    assert "overhead" in names()
    assert "convention" not in names()


def test_a_benchmark_that_breaks_off_keeps_its_rows_and_says_why(tmp_path) -> None:
    def rows():
        yield row(1.0)
        raise FileNotFoundError("bwrap is not installed\nby anybody")

    sys.modules["bench.broken"] = SimpleNamespace(rows=rows)
    try:
        taken = _take("broken")
    finally:
        del sys.modules["bench.broken"]
    said = "FileNotFoundError: bwrap is not installed"
    assert (list(taken.rows), taken.broke, taken.ok) == ([row(1.0)], said, False)
    assert _as_json("broken", taken)["broke"] == said
    page = tmp_path / "benchmarks.md"
    page.write_text(MARK)
    _refresh({"broken": taken, "fine": Taken([row(1.1)])}, page)
    assert "| promise | 1 |" in page.read_text()
    assert f"Broke off: {said}\n\n## fine" in page.read_text()
