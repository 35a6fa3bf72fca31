"""`excise study report`: the tables, figures and page of a study that has been run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.report import Format
    from excise.report.values import Summary


def report(
    directory: Annotated[Path, typer.Argument(help="A study directory.")],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Where to write. [default: DIRECTORY/report]")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="Only one of: html, md, figures.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Also put its parts between the marks of this Markdown file."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all values as one JSON object.")
    ] = False,
) -> None:
    """Write a study's report; works on a study that is unfinished or failed, and says so."""
    formats = _formats(form)
    made, summary = write(directory, out, formats, into)
    if as_json:
        from excise.report.write import summary_json

        typer.echo(json.dumps(json.loads(summary_json(summary))))
        return
    show(summary, made)


def _formats(form: str | None) -> tuple[Format, ...]:
    from excise.errors import InputError
    from excise.report import FORMATS

    if form is None:
        return FORMATS
    found = tuple(f for f in FORMATS if f == form)
    if not found:
        raise InputError(f"no format {form!r}; there are {', '.join(FORMATS)}")
    return found


def write(
    directory: Path,
    out: Path | None = None,
    formats: tuple[Format, ...] | None = None,
    into: Path | None = None,
) -> tuple[tuple[Path, ...], Summary]:
    """Read a study and write its report; what stands at the end of `excise study run` too."""
    from excise.errors import InputError
    from excise.report import FORMATS

    try:
        from excise.report.into import put_into
        from excise.report.write import read_summary, write_report
    except ImportError as error:
        raise InputError(
            f"reports need {error.name}, which is not installed: pip install 'excise[study]'"
        ) from error
    summary = read_summary(directory)
    out = out or directory / "report"
    if into is not None:
        put_into(into, summary, out)
    return write_report(summary, out, formats or FORMATS), summary


def show(summary: Summary, made: tuple[Path, ...]) -> None:
    """The main table, the finding, the doubts, and where the page is."""
    from rich.console import Console

    from excise.report.text import terminal

    Console().print(terminal(summary))
    typer.echo(f"report: {made[0]}")
