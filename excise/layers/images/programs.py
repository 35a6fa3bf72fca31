"""Running the tools that speak to registries and engines: they end with us, and what they say is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from excise.errors import ImageError

_LONGEST_LINE = 300


def run(command: Sequence[str], failed: str, *, scratch: Path, timeout_s: float) -> bytes:
    """The program's output; ImageError says that `failed`, and why, in the program's last words.

    Its temporary files go to `scratch`, and it is killed when this process is, so neither outlives us.
    """
    program, remedy = shutil.which(command[0]), f"install the program `{command[0]}`"
    if program is None:
        raise ImageError(f"{failed}: {remedy}, which does this")
    guard = shutil.which("setpriv")
    whole = [guard, "--pdeathsig", "KILL", "--"] if guard else []
    try:
        done = subprocess.run(
            [*whole, program, *command[1:]],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            env=os.environ | {"TMPDIR": str(scratch)},
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{failed}: no end after {timeout_s:.0f} s") from None
    if done.returncode != 0:
        raise ImageError(f"{failed}: {_last_words(done.stderr) or f'exit {done.returncode}'}")
    return done.stdout


def _last_words(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    line = lines[-1].strip() if lines else ""
    _, message, rest = line.partition('msg="')  # a log line: only what it says
    text = rest.rstrip('"').replace('\\"', '"') if message else line
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."
