"""From an action to the line of shell that tools take, and what they cannot be asked."""

from __future__ import annotations

import shlex

from excise.errors import InputError
from excise.types import Action


def line_of(action: Action, name: str) -> str:
    """A script as it is, anything else quoted; variables are set before it."""
    if action.stdin:
        raise InputError(f"{name} gives commands no standard input")
    if action.user is not None:
        raise InputError(f"{name} runs every command as one user; leave user out")
    argv = action.argv
    script = argv[2] if len(argv) == 3 and argv[:2] == ("bash", "-c") else shlex.join(argv)
    given = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in action.env.items())
    return given + script
