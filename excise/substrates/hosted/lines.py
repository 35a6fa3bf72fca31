"""An action as one line for a cloud's own way to run a command, and what came of it as an observation. Pure.

A cloud takes a line of shell and gives text. So the line itself enters the directory, sets the variables, reads the
input from a file that was put there before, and says in a mark of its own why a command could not start. Where a
cloud gives both streams as one, the errors come behind a mark, too.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from excise.errors import InputError
from excise.substrates.capture import Capture
from excise.types import Action, Fault, Observation

MERGED = "exec 2>&1\n"
"""How `Action.shell(merge=True)` begins: nothing comes on the second stream."""

KILLED = 137
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CODES = {
    Fault.MISSING_CWD: 126,
    Fault.NOT_EXECUTABLE: 126,
    Fault.MISSING_PROGRAM: 127,
}


@dataclass(frozen=True, slots=True)
class Line:
    """What to run, and the mark by which its answer is read. `apart`: errors come behind the mark."""

    text: str
    token: str
    apart: bool = False


def line_of(
    action: Action,
    argv: tuple[str, ...],
    *,
    workspace: str,
    token: str,
    mark: str,
    stdin: str | None = None,
    one_stream: bool = False,
) -> Line:
    """The line for that action. `argv` is the action's own or a shorter one; `stdin` is where its input lies."""
    merged = argv[:2] == ("bash", "-c") and len(argv) == 3 and argv[2].startswith(MERGED)
    apart = one_stream and not merged
    body = "\n".join(
        (
            *_input(stdin),
            *(f"export {_name(key)}={shlex.quote(value)}" for key, value in action.env.items()),
            f"export {mark}={token}",
            f"cd -- {shlex.quote(_place(workspace, action.cwd))} 2>/dev/null || {_say(token, Fault.MISSING_CWD)}",
            *_start(argv, token),
        )
    )
    if apart:
        errors = f"/tmp/.excise-{token}"  # noqa: S108  # in the sandbox
        body = (
            f"(\n{body}\n) 2>{errors}; excise_code=$?\n"
            f"printf '\\036{token}:\\036'; cat {errors}; rm -f {errors}; exit $excise_code"
        )
    return Line(body, token, apart)


def observation_of(
    line: Line, code: int, out: str, err: str, limit_bytes: int, *, timed_out: bool = False
) -> Observation:
    """What the cloud gave back as what the action did."""
    if line.apart:
        out, _, err = out.partition(f"\x1e{line.token}:\x1e")
    fault = _fault_in(out, line.token)
    if fault is not None:
        text = f"{fault.value.replace('_', ' ')}\n".encode()
        return Observation(
            _CODES[fault], stderr=text, fault=fault, stdout_bytes=0, stderr_bytes=len(text)
        )
    first, second = _kept(out, limit_bytes), _kept(err, limit_bytes)
    return Observation(
        exit_code=KILLED if timed_out else code,
        stdout=first.kept,
        stderr=second.kept,
        timed_out=timed_out,
        truncated=first.truncated or second.truncated,
        stdout_bytes=first.total_bytes,
        stderr_bytes=second.total_bytes,
    )


def _start(argv: tuple[str, ...], token: str) -> list[str]:
    """`bash` is there, or nothing of this would run; anything else is looked for before it is started."""
    command = f"exec {shlex.join(argv)}"
    program = argv[0]
    if program == "bash":
        return [command]
    if "/" not in program:
        found = f"type -P -- {shlex.quote(program)} >/dev/null"
        return [f"{found} || {_say(token, Fault.MISSING_PROGRAM)}", command]
    place = shlex.quote(program)
    return [
        f"[ -e {place} ] || {_say(token, Fault.MISSING_PROGRAM)}",
        f"[ -f {place} ] && [ -x {place} ] || {_say(token, Fault.NOT_EXECUTABLE)}",
        command,
    ]


def _say(token: str, fault: Fault) -> str:
    return f"{{ printf '\\036{token}:{fault.value}\\036'; exit {_CODES[fault]}; }}"


def _fault_in(out: str, token: str) -> Fault | None:
    said = re.fullmatch(f"\x1e{token}:([a-z_]+)\x1e", out)
    return None if said is None else Fault(said[1])


def _input(stdin: str | None) -> list[str]:
    """A file is gone as soon as it is open."""
    if stdin is None:
        return ["exec </dev/null"]
    place = shlex.quote(stdin)
    return [f"exec <{place}; rm -f {place}"]


def _place(workspace: str, cwd: str | None) -> str:
    if cwd is None:
        return workspace
    return cwd if cwd.startswith("/") else f"{workspace}/{cwd}"


def _name(key: str) -> str:
    if not _VARIABLE.fullmatch(key):
        raise InputError(f"{key[:80]!r} is no name that a shell takes for a variable")
    return key


def _kept(text: str, limit_bytes: int) -> Capture:
    capture = Capture(limit_bytes)
    capture.add(text.encode("utf-8", "surrogateescape"))
    return capture
