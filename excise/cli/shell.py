"""`excise shell`: a person's terminal in a fresh sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.agent.running import Running


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command, after `--`.", metavar="CMD")
    ] = None,
    image: Annotated[
        str, typer.Option(help="Image to stand in; host is this machine's own.")
    ] = "host",
    repo: Annotated[
        str, typer.Option(help="SOURCE@COMMIT that is in the workspace, as repo.")
    ] = "",
    deps: Annotated[
        list[Path] | None,
        typer.Option(help="Requirements file whose packages are installed; repeatable."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Name or number of a user of the image.")] = None,
    egress: Annotated[bool, typer.Option(help="Let it reach the network.")] = False,
    allow: Annotated[
        list[str] | None, typer.Option(help="HOST:PORT it may reach, and nothing else; repeatable.")
    ] = None,
) -> int:
    """Open a terminal in a fresh sandbox, which is gone when the shell ends.

    The exit code is the shell's own.
    """
    import sys
    from dataclasses import replace

    from excise.cli.environment import spec_of
    from excise.errors import InputError
    from excise.jail.blocking import Jail
    from excise.substrates.base import Terminal
    from excise.types import Action, Allow, Egress

    if not sys.stdin.isatty():
        raise InputError("a shell needs a terminal: `excise run -- CMD` runs a command without one")
    if egress and allow:
        raise InputError("--egress lets everything through: leave it out, or leave --allow out")
    reach = Allow(tuple(allow)) if allow else Egress.FULL if egress else Egress.NONE
    action = Action(tuple(command or ("bash",)), timeout_s=None, env=_terminal())
    spec = replace(spec_of(image, repo, deps or []), user=user, egress=reach)
    with Jail() as jail, jail.create(spec) as box:
        rows, columns = _size()
        return _attend(box.stream(action, terminal=Terminal(rows, columns)))


def _terminal() -> dict[str, str]:
    import os

    return {"TERM": os.environ.get("TERM", "xterm")}


def _size() -> tuple[int, int]:
    import shutil

    size = shutil.get_terminal_size()
    return size.lines, size.columns


def _attend(running: Running) -> int:
    """Pass keys in and characters out until the command ends; the terminal is as before afterwards."""
    import os
    import signal
    import sys
    import termios
    import threading
    import tty

    before = termios.tcgetattr(sys.stdin)
    resized, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    was = signal.signal(signal.SIGWINCH, lambda *_: os.write(tell, b"!"))
    try:
        tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed meanwhile stays
        threading.Thread(target=_type, args=(running, resized), daemon=True).start()
        for output in running:
            sys.stdout.buffer.write(output.data)
            sys.stdout.buffer.flush()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, was)
    return running.result().code


def _type(running: Running, resized: int) -> None:
    """What comes from the person, until there is no more; in a thread, because it comes when it comes."""
    import contextlib
    import os
    import select
    import sys

    from excise.errors import ExciseError

    keys = sys.stdin.fileno()
    with contextlib.suppress(ExciseError, OSError):
        while True:
            ready, _, _ = select.select([keys, resized], [], [])
            if resized in ready:
                os.read(resized, 64)
                running.resize(*_size())
            if keys in ready:
                data = os.read(keys, 4096)
                if not data:
                    running.end_of_input()
                    return
                running.write(data)
