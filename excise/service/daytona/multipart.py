"""Bodies of several parts, as forms and the SDK's downloads have them: read piece by piece, and written. Pure.

The reader takes bytes as they come and gives events; it holds back no more than a boundary's length of a part, so
that a part of any size passes through it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from excise.errors import InputError

HEAD_BYTES = 16 * 1024
"""The most that the headers of one part may hold."""

MOST_PARTS = 20_000
_LONGEST_BOUNDARY = 70
_PARAMETER = re.compile(r';\s*([A-Za-z0-9*_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))')


@dataclass(frozen=True, slots=True)
class Begin:
    """A part begins: the name of its field, and of its file if it has one."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class Data:
    """Some of the part that began last."""

    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """That part is complete."""


Event = Begin | Data | End


class Reader:
    """Feed it a body; at its end `finish` tells whether it was whole."""

    def __init__(self, content_type: str) -> None:
        boundary = boundary_of(content_type)
        self._mark = b"\r\n--" + boundary
        self._carry = b"\r\n"
        """What is not decided yet. A body begins as if a line had ended before it."""
        self._state = "before"
        self._parts = 0

    @property
    def whole(self) -> bool:
        """The last boundary was seen."""
        return self._state == "over"

    def feed(self, data: bytes) -> Iterator[Event]:
        """What these bytes complete; InputError where they make no sense."""
        self._carry += data
        while (step := self._step()) is not None:
            yield from step

    def finish(self) -> None:
        """The body is over."""
        if not self.whole:
            raise InputError("the body ends before its last boundary")

    def _step(self) -> tuple[Event, ...] | None:
        match self._state:
            case "before" | "part":
                return self._up_to_mark()
            case "mark":
                return self._after_mark()
            case "head":
                return self._head()
        self._carry = b""
        return None

    def _up_to_mark(self) -> tuple[Event, ...] | None:
        inside = self._state == "part"
        at = self._carry.find(self._mark)
        if at >= 0:
            data, self._carry = self._carry[:at], self._carry[at + len(self._mark) :]
            self._state = "mark"
            if not inside:
                return ()
            return (Data(data), End()) if data else (End(),)
        keep = _overlap(self._carry, self._mark)
        data, self._carry = (
            self._carry[: len(self._carry) - keep],
            self._carry[-keep:] if keep else b"",
        )
        return None if not data else (Data(data),) if inside else ()

    def _after_mark(self) -> tuple[Event, ...] | None:
        if self._carry.startswith(b"--"):
            self._state = "over"
            return ()
        line, end, rest = self._carry.partition(b"\r\n")
        if not end:
            if len(self._carry) > HEAD_BYTES:
                raise InputError("a boundary is followed by something else than a part")
            return None
        if line.strip(b" \t"):
            raise InputError("a boundary is followed by something else than a part")
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise InputError(f"a body of more than {MOST_PARTS} parts")
        self._state, self._carry = "head", b"\r\n" + rest
        return ()

    def _head(self) -> tuple[Event, ...] | None:
        head, end, rest = self._carry.partition(b"\r\n\r\n")
        if not end:
            if len(self._carry) > HEAD_BYTES:
                raise InputError(f"a part's headers hold more than {HEAD_BYTES} bytes")
            return None
        self._state, self._carry = "part", rest
        return (begin_of(head.decode("utf-8", "replace")),)


def boundary_of(content_type: str) -> bytes:
    """The boundary that a content type names."""
    kind, _, _ = content_type.partition(";")
    if kind.strip().lower() != "multipart/form-data":
        raise InputError(f"the body is no multipart/form-data but {kind[:80]!r}")
    boundary = _parameters(content_type).get("boundary", "")
    if not 0 < len(boundary) <= _LONGEST_BOUNDARY or not boundary.isascii():
        raise InputError("the content type names no boundary of 1 to 70 characters")
    return boundary.encode()


def begin_of(head: str) -> Begin:
    """The names in a part's headers."""
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            found = _parameters(value)
            if "name" in found:
                return Begin(found["name"], found.get("filename"))
    raise InputError("a part has no name")


def _parameters(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(header):
        key, value = name.lower(), _unquoted(quoted) or plain
        if key.endswith("*"):
            _, _, encoded = value.partition("''")
            found[key[:-1]] = unquote_to_bytes(encoded).decode("utf-8", "replace")
        else:
            found.setdefault(key, value)
    return found


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _overlap(data: bytes, mark: bytes) -> int:
    """How many bytes at the end of `data` could be the beginning of the mark."""
    for size in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:size]):
            return size
    return 0


def new_boundary() -> str:
    return secrets.token_hex(16)


def part(boundary: str, name: str, filename: str, *, kind: str, size: int | None = None) -> bytes:
    """The beginning of a part with a file; what it holds comes after it, and then `CLOSED`.

    A file name beyond ASCII is told twice: old SDKs read the plain form as UTF-8, new ones the extended form.
    """
    plain = "".join(c if c.isprintable() else "_" for c in filename)
    plain = plain.replace("\\", "\\\\").replace('"', '\\"')
    names = f'name="{name}"; filename="{plain}"'
    if not filename.isascii() or not filename.isprintable():
        names += f"; filename*=UTF-8''{quote(filename, safe='', errors='surrogateescape')}"
    lines = [f"--{boundary}", f"Content-Disposition: form-data; {names}", f"Content-Type: {kind}"]
    if size is not None:
        lines.append(f"Content-Length: {size}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


CLOSED = b"\r\n"
"""The end of a part that `part` began."""


def last(boundary: str) -> bytes:
    """The end of the body."""
    return f"--{boundary}--\r\n".encode()
