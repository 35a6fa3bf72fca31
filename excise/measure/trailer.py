"""Time a script inside a sandbox that has no agent: a trailer after its output, printed by the shell itself.

The script is `eval`ed in a subshell on the line it would stand on, so that `exit`, `set -e`, `exec` and a
syntax error end only the subshell and messages keep their line numbers. The shell around it prints when it
began and ended. This costs one fork and two reads of the clock, about 0.3 ms, which belong to the
dispatch D. EPOCHREALTIME (bash 5) is the wall clock: a step of it shows as a trial that does not conserve.
A persistent shell gets the same without the subshell: there, `exit` ends the shell, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from excise.types import Action, Observation

TAG = b"EXCISE"
MERGE = "exec 2>&1\n"

_PRINT = (
    f"printf '\\n{TAG.decode()} %s %s %s %s\\n' NONCE \"$_excise_code\" "
    '"$_excise_at" "$EPOCHREALTIME"\n'
)


@dataclass(frozen=True, slots=True)
class Trailer:
    """What the shell said about the script it ran."""

    exit_code: int
    inside_ns: int


def wrap(script: str, nonce: str) -> str:
    """The same script with a trailer behind its output. The nonce is letters and digits."""
    body = (
        f"_excise_at=$EPOCHREALTIME; {{ ( eval {_quoted(script)} ) 2>&3 3>&-; }} 3>&2 2>/dev/null; "
        f"_excise_code=$?\n{_print(nonce)}"
    )
    return body + 'exit "$_excise_code"\n'


def wrap_told(script: str, nonce: str) -> str:
    """The same for a persistent shell: no subshell, so directory and variables survive."""
    return (
        f"_excise_at=$EPOCHREALTIME; eval {_quoted(script)}; _excise_code=$?\n"
        f'{_print(nonce)}(exit "$_excise_code")\n'
    )


def wrap_action(action: Action, nonce: str) -> Action:
    """The same `bash -c` action with a trailer behind its standard output."""
    if action.argv[:2] != ("bash", "-c") or len(action.argv) != 3:
        raise ValueError("only an action made by Action.shell can carry a trailer")
    script = action.argv[2]
    body = wrap(script.removeprefix(MERGE), nonce)
    return replace(action, argv=("bash", "-c", MERGE + body if script.startswith(MERGE) else body))


def _print(nonce: str) -> str:
    if not (nonce.isascii() and nonce.isalnum()):
        raise ValueError("a nonce is letters and digits")
    return _PRINT.replace("NONCE", nonce)


def _quoted(script: str) -> str:
    """The script as one shell word on one line, so that its own lines count from this one."""
    escaped = script.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def parse(output: bytes, nonce: str) -> tuple[bytes, Trailer | None]:
    """The output without its trailer, and the trailer; None when the shell died before it."""
    mark = b"\n%s %s " % (TAG, nonce.encode())
    start = output.rfind(mark)
    if start < 0:
        return output, None
    end = output.find(b"\n", start + 1)
    if end < 0:
        return output, None
    try:
        code, began, ended = output[start + len(mark) : end].split()
        trailer = Trailer(int(code), _ns(ended) - _ns(began))
    except ValueError:
        return output, None
    return output[:start] + output[end + 1 :], trailer


def _ns(seconds: bytes) -> int:
    """EPOCHREALTIME has a point or a comma, by locale, and six digits behind it."""
    whole, fraction = seconds.replace(b",", b".").split(b".")
    return int(whole) * 1_000_000_000 + int(fraction.ljust(9, b"0")[:9])


def strip(observation: Observation, nonce: str) -> Observation:
    """The observation as the script alone would have given it, timed inside where the trailer came."""
    stdout, trailer = parse(observation.stdout, nonce)
    if trailer is None:
        return observation
    total = observation.stdout_bytes
    cut = len(observation.stdout) - len(stdout)
    return replace(
        observation,
        stdout=stdout,
        stdout_bytes=None if total is None else total - cut,
        inside_ns=trailer.inside_ns,
    )
