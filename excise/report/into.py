"""Parts of a report in a document of somebody's own, such as a README: between two marks each, replaced as a whole.

<!-- measured -->           the main table, the finding, where and when
<!-- /measured -->
<!-- measured:claims -->    one part by its name: any table of the report, or claims, doubts, work, figures
<!-- /measured:claims -->
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from excise.errors import InputError
from excise.report import text as texts
from excise.report import units, words
from excise.report.tables import main, tables
from excise.report.text import escaped
from excise.report.values import BARE, Summary

_MARK = re.compile(r"<!-- (/?)measured(?::([a-zA-Z0-9-]+))? -->")
NOTHING = "This study has nothing to say of that."


def section(summary: Summary) -> str:
    """Substrates side by side, a line per measure; below it the finding, and where and when it was measured."""
    table = main(summary)
    if not summary.measured or not table.rows:
        raise InputError(f"study {summary.id} has no trial to put into a document; run it first")
    labels = [row[0].text for row in table.rows]
    lines = [
        f"| | {' | '.join(escaped(x) for x in labels)} |",
        f"|---|{'---:|' * len(labels)}",
        *(
            f"| {escaped(column)} | {' | '.join(_cell(*row[i]) for row in table.rows)} |"
            for i, column in enumerate(table.columns[1:], 1)
        ),
    ]
    said = f"**{escaped(words.finding(summary))}**"
    return "\n".join([*lines, "", said, "", _provenance(summary)])


def _cell(text: str, detail: str) -> str:
    """The interval in small print; the kinds of failures too."""
    return f"{escaped(text)} <sub>{escaped(detail)}</sub>" if detail else escaped(text)


def _provenance(summary: Summary) -> str:
    sizes = units.tally(summary.measured, sum(c.failed for c in summary.cells))
    where = (
        "p50: medians; the rest: means; in brackets 95 % intervals, where there are enough trials for one. "
        f"Measured on {summary.started[:10]} on {escaped(words.host(summary))}"
    )
    how = f"preset {summary.preset}, {sizes}, {words.gate(summary)}"
    doubts = f"{len(summary.doubts)} doubts stand in the report." if summary.doubts else ""
    return " ".join(p for p in (words.completeness(summary), f"{where}: {how}.", doubts) if p)


def put_into(path: Path, summary: Summary, report: Path) -> None:
    """Replace what stands between the marks of a document, and nothing else of it. `report` has the figures."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {_why(error)}") from None
    whole = _filled(path, text, _makers(summary, os.path.relpath(report, path.parent)))
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(whole, encoding="utf-8")
        partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {_why(error)}") from None


def _filled(path: Path, text: str, makers: Mapping[str, Callable[[], str]]) -> str:
    """The text with every part anew; InputError where its marks do not make pairs."""
    pieces, at, open_at = [], 0, None
    seen: set[str] = set()
    for mark in _MARK.finditer(text):
        closing, name = bool(mark[1]), mark[2] or ""
        if closing != (open_at is not None) or (open_at is not None and name != open_at):
            raise _misplaced(path)
        if closing:
            pieces.append(f"\n{makers[name]()}\n{mark[0]}")
            open_at, at = None, mark.end()
            continue
        if name not in makers:
            known = ", ".join(sorted(n for n in makers if n))
            raise InputError(f"{path} has a mark for {name!r}; a report has {known}")
        if name in seen:
            raise _misplaced(path)
        seen.add(name)
        pieces.append(text[at : mark.end()])
        open_at, at = name, mark.end()
    if not seen or open_at is not None:
        raise _misplaced(path)
    return "".join([*pieces, text[at:]])


def _misplaced(path: Path) -> InputError:
    return InputError(
        f"{path} has no place for the table: write a line `<!-- measured -->` and below it a line "
        "`<!-- /measured -->`, each part once"
    )


def _makers(summary: Summary, figures: str) -> dict[str, Callable[[], str]]:
    """By the name in the mark what makes the part."""
    made = {t.name: t for t in tables(summary, empty=True)}

    def table(name: str) -> Callable[[], str]:
        return lambda: texts.table_markdown(made[name], title=False) if made[name].rows else NOTHING

    return {
        **{name: table(name) for name in made},
        "": lambda: section(summary),
        "claims": lambda: texts.claims(summary),
        "doubts": lambda: _doubts(summary),
        "work": lambda: _work(summary),
        "figures": lambda: _figures(summary, figures),
    }


def _doubts(summary: Summary) -> str:
    if not summary.doubts:
        return "None."
    return "\n".join(f"* {escaped(d.text)}; {escaped(d.advice)}." for d in summary.doubts)


def _work(summary: Summary) -> str:
    """What each workload takes as bare processes: the w without which no ratio of episodes means anything."""
    rows = [
        f"| {escaped(c.workload)} | {c.actions} | {units.seconds_interval(c.work_mean)} | {c.ok} / {c.n} |"
        for c in summary.cells
        if c.label == BARE and c.main and c.work_mean is not None
    ]
    if not rows:
        return NOTHING
    head = ["| workload | actions | w, mean | ok / n |", "|---|---:|---:|---:|"]
    return "\n".join([*head, *rows])


def _figures(summary: Summary, folder: str) -> str:
    from excise.report.figures import draw
    from excise.report.figures.look import Drawing

    return "\n\n".join(
        f"![{escaped(d.title)}]({folder}/figures/{d.name}.svg)\n\n{escaped(d.caption)}"
        if isinstance(d, Drawing)
        else f"{escaped(d.title)}: not drawn, {escaped(d.reason)}."
        for d in draw(summary)
    )


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text"
