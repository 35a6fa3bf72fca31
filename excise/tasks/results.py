"""Reads which tests passed and which did not out of a runner's own report. Pure text in, names out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

Runner = Literal["pytest", "django"]

_SUMMARY = re.compile(r"^=+ short test summary info =+$", re.MULTILINE)
_PYTEST = re.compile(
    r"^(?:(PASSED) (.+)|(FAILED|ERROR) ([^\[\n]+?(?:\[.*?\])?)(?: - .*)?)$", re.MULTILINE
)
"""Only what failed has a reason behind ` - `, and the id of a parameter, in brackets, may have one too."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STARTED = re.compile(r"^(\w+) \(([\w.]+)\)")
_ENDED = re.compile(r"\.\.\. (ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)$")
_BROKEN = re.compile(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\w+) \(([\w.]+)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Results:
    """Names of tests by outcome; those skipped, or failing as expected, are in neither."""

    passed: frozenset[str]
    failed: frozenset[str]
    said: str = ""
    """The last line of a report that names no test."""


def telling(command: str, runner: Runner) -> tuple[str, Mapping[str, str]]:
    """The same run, made to name every test: the command and what its environment needs besides."""
    if runner == "django":
        # Its two streams meet in one pipe: buffering would break lines in two.
        return f"{command} -v 2", MappingProxyType({"PYTHONUNBUFFERED": "1"})
    return command, MappingProxyType({"PYTEST_ADDOPTS": "-rpfE --tb=no --color=no"})


def read(report: str, runner: Runner) -> Results:
    """The outcome of every test that the report names."""
    plain = _COLOUR.sub("", report)
    found = _read_django(plain) if runner == "django" else _read_pytest(plain)
    if found.passed or found.failed:
        return found
    return replace(found, said=_last_line(plain))


def _last_line(report: str) -> str:
    return next((line.strip() for line in reversed(report.splitlines()) if line.strip()), "nothing")


def _read_pytest(report: str) -> Results:
    summaries = list(_SUMMARY.finditer(report))
    lines = report[summaries[-1].end() :] if summaries else ""
    named: dict[str, set[str]] = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for passed, name, broken, reasoned in _PYTEST.findall(lines):
        named[passed or broken].add(name or reasoned)
    failed = named["FAILED"] | named["ERROR"]
    return Results(frozenset(named["PASSED"] - failed), frozenset(failed))


def _read_django(report: str) -> Results:
    """A test's line may be broken by its docstring: its outcome is the next one that comes."""
    passed, current = set(), None
    for line in report.splitlines():
        if (started := _STARTED.match(line)) is not None:
            current = _dotted(*started.groups())
        ended = _ENDED.search(line)
        if ended is not None and current is not None:
            if ended[1] == "ok":
                passed.add(current)
            current = None
    failed = {_dotted(name, place) for name, place in _BROKEN.findall(report)}
    return Results(frozenset(passed - failed), frozenset(failed))


def _dotted(name: str, place: str) -> str:
    """`module.Class.test`: since Python 3.11 the place ends with the test's own name."""
    return place if place.endswith(f".{name}") else f"{place}.{name}"
