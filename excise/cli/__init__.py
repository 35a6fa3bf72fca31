"""The command line: parse, call, print, exit code. One file per command group; heavy imports in the bodies."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; bad input is one clear line and exit code 2, a failed job is 1."""
    import typer

    from excise.cli.app import app
    from excise.errors import NO_ROOM, ExciseError, InputError

    try:
        outcome = app(args=argv, standalone_mode=False)
    except ExciseError as error:
        return _say(str(error), 2 if isinstance(error, InputError) else 1)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        full = error.filename or "what is written here"
        return _say(f"no room on the disk of {full}: make some, then run the same command again", 1)
    except typer.TyperException as error:
        return _say(getattr(error, "format_message", error.__str__)(), 2)
    except typer.Abort:
        return _say("interrupted", 130)
    return outcome if isinstance(outcome, int) else 0


def _say(message: str, code: int) -> int:
    text = message if message.startswith("Usage:") else f"excise: {message}"
    print(text, file=sys.stderr)  # noqa: T201
    return code
