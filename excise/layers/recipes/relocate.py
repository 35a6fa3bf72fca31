"""A virtual environment that was made in one place and will stand in another: its scripts are told so."""

from __future__ import annotations

import re
from pathlib import Path

_TRAMPOLINE = re.compile(
    rb"\A#!/bin/sh\n'''exec' [\"']?([^\"'\n]+?)[\"']? \"\$0\" \"\$@\"\n' '''\n"
)
_LONGEST = 126
"""Of a `#!` line; installers put a shell in front of a longer one, which costs each start of the script."""


def relocate(place: Path, made_as: str, stands_at: str) -> None:
    """Rewrite the scripts and settings of the environment at `place`."""
    for file in [place / "pyvenv.cfg", *sorted((place / "bin").iterdir())]:
        if file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        told = rewritten(data, made_as.encode(), stands_at.encode())
        if told != data:
            file.write_bytes(told)


def rewritten(data: bytes, made_as: bytes, stands_at: bytes) -> bytes:
    """`data` with the new place for the old, and without a shell before an interpreter that needs none."""
    if b"\0" in data:
        return data
    told = data.replace(made_as, stands_at)
    trampoline = _TRAMPOLINE.match(told)
    if trampoline and len(trampoline[1]) < _LONGEST and b" " not in trampoline[1]:
        return b"#!" + trampoline[1] + b"\n" + told[trampoline.end() :]
    return told
