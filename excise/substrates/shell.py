"""How to talk to a persistent bash over its three pipes: bytes in, bytes out, no I/O in here.

Every script is one `eval`, followed by a marker on each stream that carries a fresh nonce, and on stdout
the exit code. The markers go to copies of the streams made at the start, so a script may redirect its own.

Covered: directory, variables, functions and options survive; a script without a final newline; binary
output; a syntax error (code 2, the shell lives); scripts that read stdin get an end of file.
Not covered: a script that closes descriptors 198 and 199. A script that ends the shell (`exit`, a failure
under `set -e`) ends the stream without a marker: its observation is the shell's own exit, and the shell is
gone after it.
"""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass

from excise.errors import InputError
from excise.substrates.capture import Capture

ARGV = ("bash", "--noprofile", "--norc")
OPENING = b"exec 198>&1 199>&2\n"
"""Send this once, before the first script."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What to send for one script, and the marks that end its output on each stream."""

    request: bytes
    mark: bytes

    @classmethod
    def of(cls, script: str, stdin: str = "</dev/null") -> Exchange:
        """`stdin` is the redirection that the script reads from."""
        if "\0" in script:
            raise InputError("a script cannot contain a zero byte")
        mark = secrets.token_hex(16)
        text = (
            f"eval {shlex.quote(script)} {stdin}\n"
            f"printf '\\036{mark}:%d\\036' \"$?\" >&198; printf '\\036{mark}:\\036' >&199\n"
        )
        return cls(text.encode("utf-8", "surrogateescape"), b"\x1e" + mark.encode() + b":")


class Split:
    """Reads one stream up to its mark, and tells output from what is not."""

    def __init__(self, mark: bytes) -> None:
        self.value: bytes | None = None
        """What stood in the mark (the exit code, on stdout), once it has been seen."""
        self._mark = mark
        self._carry = b""
        self._in_mark = False

    @property
    def done(self) -> bool:
        return self.value is not None

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Take more of the stream; returns what of it is output, and what lies behind the mark."""
        data, output = self._carry + data, b""
        self._carry = b""
        if not self._in_mark:
            output, data = self._up_to_mark(data)
        if self._in_mark:
            value, end, rest = data.partition(b"\x1e")
            if end:
                self.value = value
                return output, rest
            self._carry = data
        return output, b""

    def end(self) -> bytes:
        """The stream ended without a mark: whatever was held back is output."""
        held, self._carry = (b"" if self._in_mark else self._carry), b""
        return held

    def _up_to_mark(self, data: bytes) -> tuple[bytes, bytes]:
        at = data.find(self._mark)
        if at >= 0:
            self._in_mark = True
            return data[:at], data[at + len(self._mark) :]
        keep = self._possible_start(data)
        self._carry = data[len(data) - keep :]
        return data[: len(data) - keep], b""

    def _possible_start(self, data: bytes) -> int:
        """How many bytes at the end could be the beginning of the mark."""
        at = data.rfind(b"\x1e", max(0, len(data) - len(self._mark) + 1))
        return len(data) - at if at >= 0 and self._mark.startswith(data[at:]) else 0


class Frame:
    """Reads one stream up to its mark; what was captured is the script's own output, exactly."""

    def __init__(self, mark: bytes, limit_bytes: int) -> None:
        self.output = Capture(limit_bytes)
        self._split = Split(mark)

    @property
    def value(self) -> bytes | None:
        return self._split.value

    @property
    def done(self) -> bool:
        return self._split.done

    def feed(self, data: bytes) -> bytes:
        """Take more of the stream; returns what lies behind the mark."""
        output, rest = self._split.feed(data)
        self.output.add(output)
        return rest

    def end(self) -> None:
        """The stream ended without a mark: whatever was held back is output."""
        self.output.add(self._split.end())
