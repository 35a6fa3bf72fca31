"""The same report as Markdown, as CSV, and as what a terminal prints at the end of a study."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from excise.report import units, words
from excise.report.figures.look import Drawing, NotDrawn
from excise.report.load_tables import loads
from excise.report.table import Said, Table
from excise.report.tables import FIRST, main
from excise.report.values import Summary

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as Grid


def markdown(
    summary: Summary, drawings: Sequence[Drawing | NotDrawn], tables: Sequence[Table]
) -> str:
    """The report as Markdown, with its figures beside it."""
    parts = [
        f"# The rollout infrastructure tax: study {escaped(summary.id)}",
        f"{escaped(words.measured(summary))}  \n{escaped(words.host(summary))} · {summary.started[:10]} · excise {summary.version}",
        words.completeness(summary),
        f"**{escaped(words.finding(summary))}**",
        *(table_markdown(t) for t in tables if t.name in FIRST),
        _section("Doubts", [f"- {escaped(d.text)}. *{escaped(d.advice)}*" for d in summary.doubts]),
        *(_figure(d) for d in drawings),
        f"## The paper's claims\n\n{claims(summary)}",
        _section(
            "Advice",
            [f"- {escaped(a.text)} ({units.share(a.sure)} of resamples)" for a in summary.advice],
        ),
        *(table_markdown(t) for t in tables if t.name not in FIRST),
        _section(
            "Trials that failed",
            [
                f"- {escaped(f.cell)}, block {f.block}: {f.outcome} {f.phase} {escaped(f.message)}"
                for f in summary.failures
            ],
        ),
        _section("Method", [*words.method(summary)]),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""


def _figure(drawing: Drawing | NotDrawn) -> str:
    if isinstance(drawing, NotDrawn):
        return f"## {drawing.title}\n\nNot drawn: {drawing.reason}."
    return f"## {drawing.title}\n\n![{drawing.title}](figures/{drawing.name}.svg)\n\n{escaped(drawing.caption)}"


def claims(summary: Summary) -> str:
    """The paper's claims, each with its verdict here."""
    lines = ["| what the paper says | section | verdict | rests on |", "|---|---|---|---|"]
    lines += [
        f"| {escaped(c.words)} | {c.section} | {c.verdict} | {escaped(words.evidence(c))} |"
        for c in summary.claims
    ]
    return "\n".join(lines)


def table_markdown(table: Table, *, title: bool = True) -> str:
    rows = [
        *([f"## {table.title}", ""] if title else []),
        f"| {' | '.join(escaped(c) for c in table.columns)} |",
        f"|{'---|' * len(table.columns)}",
        *(f"| {' | '.join(_one_line(c) for c in row)} |" for row in table.rows),
        "",
        escaped(table.note),
    ]
    return "\n".join(rows)


def _one_line(said: Said) -> str:
    return f"{escaped(said.text)} {escaped(said.detail)}".strip()


def escaped(text: str) -> str:
    """What a cell of a Markdown table may hold."""
    return text.replace("\n", ", ").replace("|", "\\|").replace("<", "&lt;")


def table_csv(table: Table) -> str:
    """The table for a spreadsheet, the details in columns of their own."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([x for c in table.columns for x in (c, f"{c}: interval or remark")])
    writer.writerows([x for said in row for x in said] for row in table.rows)
    return out.getvalue()


def terminal(summary: Summary) -> Group:
    """The main table turned on its side to fit 80 columns, what came of loads, the finding and the doubts."""
    from rich.console import Group
    from rich.text import Text

    grids = [_turned(t) for t in (main(summary),) if t.rows]
    grids += [_listed(t) for t in (loads(summary),) if t.rows]
    notes = [words.completeness(summary), words.finding(summary), words.harness(summary)]
    lines = [Text(n) for n in notes if n]
    lines += [Text(f"doubt: {d.text}; {d.advice}", style="yellow") for d in summary.doubts]
    return Group(*grids, *lines)


def _turned(table: Table) -> Grid:
    """A row per column, so that substrates stand side by side."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
    grid.add_column("")
    for row in table.rows:
        grid.add_column(row[0].text, justify="right", overflow="fold")
    for i, column in enumerate(table.columns[1:], 1):
        cells = [row[i] for row in table.rows]
        grid.add_row(column, *(Text("\n".join(x for x in c if x)) for c in cells))
    return grid


SHOWN_OF_LOADS = ("substrate", "load", "ok / n", "tti p50", "all ready", "per second")


def _listed(table: Table) -> Grid:
    """The columns that fit a terminal; the page has all of them."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.title, title_justify="left")
    shown = [table.columns.index(c) for c in SHOWN_OF_LOADS]
    for i in shown:
        grid.add_column(table.columns[i], overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text("\n".join(x for x in row[i] if x)) for i in shown))
    return grid
