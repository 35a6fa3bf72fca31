"""The main table in a document of somebody's own, such as a README: between two marks, replaced as a whole."""

from __future__ import annotations

from pathlib import Path

from excise.errors import InputError
from excise.report import units, words
from excise.report.tables import main
from excise.report.text import escaped
from excise.report.values import Summary

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


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


def put_into(path: Path, summary: Summary) -> None:
    """Replace what stands between the marks of a document, and nothing else of it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {_why(error)}") from None
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise InputError(
            f"{path} has no place for the table: write a line `{BEGIN}` and below it a line `{END}`"
        )
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    whole = f"{head}{BEGIN}\n{section(summary)}\n{END}{tail}"
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(whole, encoding="utf-8")
        partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {_why(error)}") from None


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text"
