"""Exec knows no directory, no variables, no end of input, and waits for whoever keeps the output open. A line of sh
around each command knows all that; nothing is asked here.

The line marks the end of the command on both streams (see `substrates.shell`), so that a child in the background
holds nothing up. What could not be started is told by the shell under a name that nobody else has.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from excise.errors import InputError
from excise.types import Fault

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_DIRECTORY = b"no directory "


def wrapped(
    argv: tuple[str, ...], *, cwd: str, env: Mapping[str, str], mark: str, stdin_bytes: int | None
) -> tuple[str, ...]:
    """The argv to execute. `stdin_bytes` is how much input will come; None: there is none."""
    place = shlex.quote(cwd)
    line = (
        f'if cd {place} 2>/dev/null; then (exec "$@"); c=$?; '
        f"else printf '%s: {NO_DIRECTORY.decode()}%s\\n' \"$0\" {place} >&2; c=126; fi; "
        f"printf '\\036{mark}:%d\\036' $c; printf '\\036{mark}:\\036' >&2; exit $c"
    )
    if stdin_bytes is not None:
        line = f"head -c {stdin_bytes} | {{ {line}; }}"
    return ("sh", "-c", f"{exports(env)}{line}", name_of(mark), *argv)


def exports(env: Mapping[str, str]) -> str:
    """The variables as the beginning of a script."""
    for name in env:
        if _NAME.fullmatch(name) is None:
            raise InputError(f"kubernetes: {name!r} is no name that a shell can export")
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    return f"export {words}; " if words else ""


def name_of(mark: str) -> str:
    """What the shell calls itself in its complaints."""
    return f"sh-{mark}"


def fault_in(code: int, complaint: bytes, mark: str) -> Fault | None:
    """Why the command never started, if it did not."""
    if code not in {126, 127} or not complaint.startswith(name_of(mark).encode() + b": "):
        return None
    if NO_DIRECTORY in complaint and code == 126:
        return Fault.MISSING_CWD
    return Fault.MISSING_PROGRAM if code == 127 else Fault.NOT_EXECUTABLE


def readable(complaint: bytes, mark: str) -> bytes:
    """The complaint under the shell's usual name."""
    return complaint.replace(name_of(mark).encode(), b"sh")
