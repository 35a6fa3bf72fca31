"""What a step must give on every substrate, compared after taking out what may differ.

May differ: durations, memory addresses, and of a long listing (`ls -l`) everything that belongs to the file
system and not to the file: link counts, owners, dates, block totals, sizes of directories, and the mode of
`.` and `..`. Absolute paths are cut down to the repository, the interpreter's library or the
temporary directory they lead to. Everything else must be equal: names, modes and sizes of files,
their content, the order of lines, the number of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from excise.workloads.base import Golden

_RULED_LINE = re.compile(rb"(?m)^={2,} ([^=\n]{1,300}) ={2,}$")
_DURATION = re.compile(
    rb"(?<![\w.])\d+\.\d+ ?(?:ns|us|\xc2\xb5s|\xce\xbcs|ms|s|seconds)\b(?: \(\d+:\d\d:\d\d\))?"
)
_ADDRESS = re.compile(rb"\b0x[0-9a-f]{8,16}\b")
_TOTAL = re.compile(rb"(?m)^total \d+$")
_LISTED = re.compile(
    rb"(?m)^([-bcdlps])([-rwxsStT]{9})[.+@]? +\d+ +\S+ +\S+ +(\d+) "
    rb"(?:[A-Z][a-z]{2} [ \d]\d +(?:\d\d:\d\d|\d{4})|\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d\.\d+ [-+]\d{4})?) "
    rb"(.*)$"
)
_ABOVE = rb"(?<![\w./<>~-])(?:/[\w.+@~-]+)*"
_REPOSITORY = re.compile(_ABOVE + rb"/repo(?=[/\s\"':,)]|$)")
_LIBRARY = re.compile(_ABOVE + rb"/lib(?:64)?/python3\.\d+(?=/)")
_TEMPORARY = re.compile(
    rb"(?<![\w./<>~-])(?:/tmp/tmp[\w./~-]*|[\w./~-]*/pytest-of-[\w./~-]*)",
)


def normalise(output: bytes) -> bytes:
    """The observation without what no substrate can be held to. Idempotent."""
    output = _RULED_LINE.sub(_ruled, output)
    output = _DURATION.sub(b"<time>", output)
    output = _ADDRESS.sub(b"0x<address>", output)
    output = _TOTAL.sub(b"total <blocks>", output)
    output = _LISTED.sub(_file, output)
    output = _REPOSITORY.sub(b"<repo>", output)
    output = _LIBRARY.sub(b"<python>", output)
    return _TEMPORARY.sub(b"<tmp>", output)


def golden_of(exit_code: int, output: bytes) -> Golden:
    """What this observation demands of every other one of the same step."""
    normal = normalise(output)
    return Golden(exit_code, sha256(normal).hexdigest(), len(normal))


def matches(golden: Golden, exit_code: int, output: bytes) -> bool:
    """Whether an observation is the golden one; output that was cut is not."""
    return golden_of(exit_code, output) == golden


def chain(goldens: Iterable[Golden]) -> str:
    """One digest over a workload's goldens, in order."""
    digest = sha256()
    for golden in goldens:
        digest.update(f"{golden.exit_code} {golden.sha256} {golden.size_bytes}\n".encode())
    return digest.hexdigest()


def _ruled(found: re.Match[bytes]) -> bytes:
    """A line that is filled up to a width around a duration: its rule is as long as the time is short."""
    timed = _DURATION.search(found[1])
    return b"=== " + found[1] + b" ===" if timed else found[0]


def _file(found: re.Match[bytes]) -> bytes:
    kind, mode, size, name = found.groups()
    if name in (b".", b".."):
        return kind + b" <dir> " + name
    if kind == b"d":
        return kind + mode + b" <dir> " + name
    return kind + mode + b" <file> " + size + b" " + name
