"""The head of an HTTP/1.1 request, read strictly: what two readers could understand differently is refused. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_HEAD_BYTES = 32 * 1024
MOST_FIELDS = 100

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    rb"(?P<method>[A-Z]{1,20}) (?P<target>/[!-~]{0,16383}) HTTP/1\.(?P<minor>[01])\r\n"
    rb"(?P<fields>(?:" + _TOKEN + rb":[^\r\n\0]*(?:\r\n|$))*)"
)


class BadHead(Exception):
    """No head that we take."""


@dataclass(frozen=True, slots=True)
class Head:
    """One request's head. Names are in lower case; `length` is None where the body comes in chunks."""

    method: str
    target: str
    fields: dict[str, str]
    length: int | None
    keeps: bool

    @property
    def upgrades(self) -> bool:
        """The connection is about to speak something else."""
        return "upgrade" in self.fields


def parse(data: bytes) -> Head:
    """From everything before the empty line. A `Connection` that lists several things keeps nothing."""
    found = _HEAD.fullmatch(data + b"\r\n")
    if found is None:
        raise BadHead("the request's head is malformed")
    lines = found["fields"].decode("latin-1").split("\r\n")
    lines.pop()
    if len(lines) > MOST_FIELDS:
        raise BadHead(f"more than {MOST_FIELDS} headers")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in fields and name in _ONCE:
            raise BadHead(f"two headers {name}")
        fields[name] = value.strip(" \t")
    newer = found["minor"] == b"1"
    if newer and not fields.get("host"):
        raise BadHead("no header host")
    keeps = newer and fields.get("connection", "keep-alive").lower() == "keep-alive"
    method, target = found["method"].decode(), found["target"].decode()
    return Head(method, target, fields, _length(fields), keeps)


def token_of(key: str | None, authorization: str | None) -> str | None:
    """The token that these headers hold."""
    if key is not None or authorization is None:
        return key
    kind, _, rest = authorization.partition(" ")
    return rest.strip() if kind.lower() == "bearer" else None


def chunked(data: bytes | bytearray, most: int) -> tuple[bytes, int] | None:
    """The body that begins there and came in chunks, and its size on the wire; None while some of it is missing.

    BadHead for one of more than `most` bytes, and for whatever few clients do: extensions, trailers.
    """
    parts: list[bytes] = []
    at = size = 0
    while (found := _CHUNK.match(data, at)) is not None:
        length = int(found[1], 16)
        size += length
        if size > most:
            raise BadHead("a body that is too large")
        end = found.end() + length
        if len(data) < end + 2:
            return None
        if data[end : end + 2] != b"\r\n":
            raise BadHead("a chunk is longer or shorter than it says")
        if length == 0:
            return b"".join(parts), end + 2
        parts.append(bytes(data[found.end() : end]))
        at = end + 2
    if _BEGINNING_OF_CHUNK.fullmatch(data, at) is None:
        raise BadHead("no chunk begins there")
    return None


_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_BEGINNING_OF_CHUNK = re.compile(rb"[0-9A-Fa-f]{0,8}\r?")
_ONCE = frozenset(
    {"content-length", "transfer-encoding", "host", "authorization", "x-api-key", "content-type"}
)


def _length(fields: dict[str, str]) -> int | None:
    length, coding = fields.get("content-length"), fields.get("transfer-encoding")
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise BadHead("a body is either chunked or of one length")
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise BadHead("content-length is no number")
    return int(length)
