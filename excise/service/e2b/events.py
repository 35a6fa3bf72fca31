"""Processes as the SDKs are told of them: how they are asked for, what comes of them, how they end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from excise.errors import InputError
from excise.service.e2b import asked
from excise.service.processes import Process
from excise.service.tape import Piece
from excise.substrates.base import Terminal
from excise.types import Observation

KEEPALIVE: dict[str, Any] = {"event": {"keepalive": {}}}
_SIGNALS = {"SIGNAL_SIGTERM": 15, "SIGNAL_SIGKILL": 9, 15: 15, 9: 9}
_LARGEST_SIDE = 10_000


@dataclass(frozen=True, slots=True)
class Wish:
    """A process that somebody wants started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    tag: str | None
    terminal: Terminal | None
    input_open: bool


def wish_of(message: Mapping[str, Any]) -> Wish:
    """Out of a StartRequest. Older SDKs say nothing of input, and expect it."""
    config = asked.table(message, "process")
    argv = (asked.text(config, "cmd"), *asked.words(config, "args"))
    if "\0" in "".join(argv):
        raise InputError("a command cannot contain a zero byte: send binary data to its input")
    return Wish(
        argv,
        asked.environment(config, "envs"),
        asked.text(config, "cwd", ""),
        asked.maybe_text(message, "tag"),
        terminal_of(message),
        asked.flag(message, "stdin", default=True),
    )


def terminal_of(message: Mapping[str, Any]) -> Terminal | None:
    """The terminal that is asked for, or its new size."""
    if message.get("pty") is None:
        return None
    size = asked.table(asked.table(message, "pty"), "size")
    rows, columns = asked.whole(size, "rows", 24), asked.whole(size, "cols", 80)
    if max(rows, columns) > _LARGEST_SIDE:
        raise InputError(f"a terminal of {rows} x {columns}; {_LARGEST_SIDE} is the most")
    return Terminal(rows or 24, columns or 80)


def selected(message: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """The number or the tag of the process that is meant."""
    selector = asked.table(message, "process")
    number, tag = asked.maybe_whole(selector, "pid"), asked.maybe_text(selector, "tag")
    if number is None and tag is None:
        raise InputError("which process? Give its pid or its tag")
    return number, tag


def signal_of(message: Mapping[str, Any]) -> int:
    found = message.get("signal")
    number = _SIGNALS.get(found) if isinstance(found, str | int) else None
    if number is None:
        raise InputError("a signal is SIGNAL_SIGTERM or SIGNAL_SIGKILL")
    return number


def input_of(message: Mapping[str, Any]) -> bytes:
    """What is typed, or fed to standard input."""
    given = asked.table(message, "input")
    return asked.octets(given, "pty" if "pty" in given else "stdin")


def started(process: Process) -> dict[str, Any]:
    return {"event": {"start": {"pid": process.number}}}


def data(piece: Piece, *, terminal: bool) -> dict[str, Any]:
    """Output. Bytes become base64 when this becomes JSON."""
    name = "pty" if terminal else "stdout" if piece.stream == 1 else "stderr"
    return {"event": {"data": {name: piece.data}}}


def ended(found: Observation) -> dict[str, Any]:
    """The end; a failure is told in words, too."""
    status = f"exit status {found.exit_code}"
    end: dict[str, Any] = {"exitCode": found.exit_code, "exited": True, "status": status}
    if found.exit_code:
        end["error"] = status
    return {"event": {"end": end}}


def listed(process: Process, wish: Wish | None) -> dict[str, Any]:
    """One of those that are under way, as it was asked for."""
    action = process.action
    argv, env = (action.argv, action.env) if wish is None else (wish.argv, wish.env)
    config: dict[str, Any] = {"cmd": argv[0], "args": argv[1:], "envs": env}
    if action.cwd is not None:
        config["cwd"] = action.cwd
    told: dict[str, Any] = {"config": config, "pid": process.number}
    if process.tag is not None:
        told["tag"] = process.tag
    return told
