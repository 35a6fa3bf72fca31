"""The files of a report: written whole into DIR/report, replacing what an earlier report left there."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from excise.errors import NO_ROOM, DiskFull, InputError
from excise.measure.store import read_study
from excise.report import FORMATS, Format
from excise.report.adviser import inputs
from excise.report.figures import draw
from excise.report.figures.look import Drawing
from excise.report.html import page
from excise.report.summary import summarise
from excise.report.tables import tables
from excise.report.text import markdown, table_csv, table_markdown
from excise.report.values import Summary


def read_summary(study: Path) -> Summary:
    """What there is to say of the study in this directory."""
    found = read_study(study)
    return summarise(found.record, found.trials)


def summary_json(summary: Summary) -> bytes:
    """All values, unrounded. A time that is null never ended: JSON has no infinity."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"


def write_report(
    summary: Summary, out: Path, formats: tuple[Format, ...] = FORMATS
) -> tuple[Path, ...]:
    """Write the report's files; returns them, the page first where there is one."""
    drawings = draw(summary)
    made = tables(summary)
    contents: dict[str, bytes] = {}
    if "html" in formats:
        contents["report.html"] = page(summary, drawings, made).encode()
    if "md" in formats:
        contents["report.md"] = markdown(summary, drawings, made).encode()
        for t in made:
            contents[f"tables/{t.name}.md"] = (table_markdown(t) + "\n").encode()
            contents[f"tables/{t.name}.csv"] = table_csv(t).encode()
    if "md" in formats or "figures" in formats:
        for d in drawings:
            if isinstance(d, Drawing):
                contents[f"figures/{d.name}.svg"] = d.svg.encode()
                contents[f"figures/{d.name}.png"] = d.png
    contents["summary.json"] = summary_json(summary)
    for of in inputs(summary):
        document = msgspec.json.format(msgspec.json.encode(of), indent=1) + b"\n"
        contents[f"adviser/{file_name(of.label)}.json"] = document
    return _put(out, contents)


def file_name(label: str) -> str:
    """A substrate's label as a name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", label)


def _put(out: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """All files beside their places first, then each into its place: an earlier report stays if there is no room."""
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".report-") as scratch:
            for name, content in contents.items():
                path = Path(scratch, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            for name in contents:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                Path(scratch, name).replace(out / name)
    except OSError as error:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        kind = DiskFull if error.errno in NO_ROOM else InputError
        raise kind(
            f"cannot write into {out}: {error.strerror}; the study is as it was: "
            "make room, or choose another --out for `excise study report`"
        ) from None
    return tuple(out / name for name in contents)
