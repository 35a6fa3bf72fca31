"""`python -m bench NAME [--json]`, or `--all` to run every benchmark and refresh the table in the docs."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.convention import Row
from excise.measure.host import facts

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
MARK = "<!-- the table below is written by `make bench` -->"


def names() -> list[str]:
    """Every benchmark there is."""
    machinery = {"__init__", "__main__", "convention"}
    return sorted(p.stem for p in HERE.glob("*.py") if p.stem not in machinery)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=names())
    parser.add_argument("--all", action="store_true", help="run all, refresh docs/benchmarks.md")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.all == bool(asked.name):
        parser.error("give one benchmark's name, or --all")
    results: dict[str, Taken] = {}
    for name in names() if asked.all else [asked.name]:
        results[name] = _take(name)
        if asked.json:
            print(json.dumps(_as_json(name, results[name])), flush=True)
        else:
            _show(name, results[name])
    if asked.all:
        _refresh(results)
    return 0 if all(taken.ok for taken in results.values()) else 1


@dataclass(frozen=True, slots=True)
class Taken:
    """What a benchmark gave: its rows, how long they took, and what broke it off, if anything did."""

    rows: Sequence[Row]
    seconds: float = 0.0
    broke: str = ""

    @property
    def ok(self) -> bool:
        return not self.broke and all(row.ok for row in self.rows)


def _take(name: str) -> Taken:
    """One benchmark that cannot run here must not take the others' tables with it."""
    rows: list[Row] = []
    began = time.monotonic()
    broke = ""
    try:
        rows += import_module(f"bench.{name}").rows()
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever it is, it is told, and ends in 1)
        broke = f"{type(error).__name__}: {error}".splitlines()[0]
    return Taken(rows, time.monotonic() - began, broke)


def _as_json(name: str, taken: Taken) -> dict[str, object]:
    return {
        "name": name,
        "host": _host(),
        "date": _today(),
        "rows": [row.as_json() for row in taken.rows],
        **({"broke": taken.broke} if taken.broke else {}),
    }


@cache
def _host() -> str:
    known = facts(HERE)
    return f"{known['cpu']}, {known['cores']} cores, kernel {known['kernel']}, Python {known['python']}"


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


HEADS = ("promise", "value", "baseline", "reach", "aim", "ok", "n", "p50 us", "p95 us")


def _cells(row: Row) -> tuple[str, ...]:
    bound = ">=" if row.higher else "<="
    return (
        row.name,
        f"{row.value:.3g}",
        row.baseline,
        f"{bound} {row.reach:g}",
        f"{bound} {row.aim:g}",
        "yes" if row.ok else "NO",
        str(row.n),
        f"{row.p50_us:,.1f}",
        f"{row.p95_us:,.1f}",
    )


def _show(name: str, taken: Taken) -> None:
    title = f"{name}: {taken.seconds:.0f} s on {_today()}, {_host()}"
    table = Table(title=title, title_justify="left")
    for head in HEADS:
        table.add_column(head)
    for row in taken.rows:
        table.add_row(*_cells(row), style=None if row.ok else "bold red")
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    if taken.broke:
        console.print(f"{name} broke off: {taken.broke}", style="bold red", markup=False)


def _refresh(results: Mapping[str, Taken], document: Path = DOCUMENT) -> None:
    head = document.read_text(encoding="utf-8").split(MARK)[0]
    lines = [head + MARK, "", f"Taken on {_today()}, {_host()}."]
    for name, taken in results.items():
        lines += ["", f"## {name}", "", "| " + " | ".join(HEADS) + " |", "|---" * len(HEADS) + "|"]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in taken.rows]
        lines += ["", f"Broke off: {taken.broke}"] if taken.broke else []
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
