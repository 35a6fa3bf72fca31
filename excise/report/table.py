"""A table as text in cells; Markdown, rich, CSV and the page only lay it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from excise.report import units
from excise.report.units import NONE
from excise.tax.interval import Interval


class Said(NamedTuple):
    """One cell: the number, and the interval or remark that stands below it."""

    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that knows its name, what it shows, and nothing of where it is printed."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Said, ...], ...]


def said(interval: Interval | None, shown: units.Format, missing: str = NONE) -> Said:
    """An estimate as text and its interval as detail; a bound alone stays one text."""
    if interval is None:
        return Said(missing)
    whole = shown(interval)
    point, bracket, rest = whole.partition(" [")
    if not bracket:
        return Said(whole)
    bounds, _, unit = rest.partition("]")
    return Said(f"{point}{unit}", f"[{bounds}]")
