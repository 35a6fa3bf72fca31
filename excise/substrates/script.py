"""Commands longer than the kernel takes: decides what to put into a file instead, and touches nothing.

Linux bounds one argument to 128 KiB. A longer `bash -c SCRIPT` is turned into a short one that evaluates
the script from a file: stdin, `$0`, positional parameters and exit codes stay as they were. Any other
argument of that size cannot be helped, and fails as it would from a shell: 126, "Argument list too long".
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePath

from excise.errors import InputError

ARGUMENT_LIMIT_BYTES = 128 * 1024 - 1
"""MAX_ARG_STRLEN of Linux, less the terminating zero."""

_COMMAND_FLAG = re.compile(r"-[a-zA-Z]*c")


@dataclass(frozen=True, slots=True)
class Spilled:
    """Run `argv` after `data` was written to the path that was given; remove the file afterwards."""

    argv: tuple[str, ...]
    data: bytes


def spill(
    argv: tuple[str, ...], path: str, *, limit_bytes: int = ARGUMENT_LIMIT_BYTES
) -> Spilled | None:
    """How to run `argv` with its script in a file at `path`; None if it can run as it is."""
    if fits(argv, limit_bytes):
        return None
    for at in range(2, len(argv)):
        data = argv[at].encode("utf-8", "surrogateescape")
        if len(data) > limit_bytes and _is_script(argv, at):
            short = (
                *argv[:at],
                f'eval "$({_reader(argv[0])}{shlex.quote(path)})"',
                *argv[at + 1 :],
            )
            return Spilled(short, data)
    return None


def fits(argv: tuple[str, ...], limit_bytes: int = ARGUMENT_LIMIT_BYTES) -> bool:
    """Whether it is short enough however it is encoded, as nearly every command is."""
    return all(len(a) * 4 <= limit_bytes for a in argv)


def check(argv: tuple[str, ...]) -> None:
    """Refuse what no operating system can start."""
    if not argv:
        raise InputError("an action needs a program: argv is empty")
    if any("\0" in a for a in argv):
        raise InputError("a command cannot contain a zero byte; send binary data as stdin")


def _is_script(argv: tuple[str, ...], at: int) -> bool:
    return _name(argv[0]) in {"bash", "sh", "dash"} and bool(_COMMAND_FLAG.fullmatch(argv[at - 1]))


def _reader(program: str) -> str:
    return "<" if _name(program) == "bash" else "cat "


def _name(program: str) -> str:
    return PurePath(program).name
