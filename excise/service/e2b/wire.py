"""Connect-RPC as the SDKs speak it: JSON in envelopes of five bytes and a length, and errors by their names.

An envelope is a byte of flags, the length of its data as four bytes, big endian, and the data. A stream ends with an
envelope of its own flag, that holds `{}` or the error. Nothing is compressed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from excise.errors import InputError
from excise.service.errors import TooLarge
from excise.service.problems import Problem
from excise.types import MIB

UNARY = "application/json"
STREAM = "application/connect+json"
LARGEST_MESSAGE = 64 * MIB

_HEAD = struct.Struct(">BI")
_COMPRESSED = 1
_LAST = 2

_CODES = {
    "unauthorized": "unauthenticated",
    "sandbox_gone": "unavailable",
    "file_not_found": "not_found",
    "not_found": "unimplemented",
    "file_exists": "already_exists",
    "permission_denied": "permission_denied",
    "conflict": "already_exists",
    "wrong_state": "failed_precondition",
    "too_large": "resource_exhausted",
    "too_many": "resource_exhausted",
    "overloaded": "resource_exhausted",
    "unsupported": "unimplemented",
    "unavailable": "unavailable",
    "deadline_exceeded": "deadline_exceeded",
}
_STATUS = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "resource_exhausted": 429,
    "internal": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


def envelope(message: object) -> bytes:
    """One message of a stream."""
    data = msgspec.json.encode(message)
    return _HEAD.pack(0, len(data)) + data


def last(error: Mapping[str, str] | None = None) -> bytes:
    """The end of a stream."""
    data = msgspec.json.encode({"error": error} if error else {})
    return _HEAD.pack(_LAST, len(data)) + data


class Envelopes:
    """The messages in what comes, however it is cut up."""

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self._largest = largest
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are whole with this. The end of a client's stream says nothing: it is left out."""
        self._rest += data
        found = []
        while len(self._rest) >= _HEAD.size:
            flags, length = _HEAD.unpack_from(self._rest)
            if length > self._largest:
                raise TooLarge(f"a message of {length} bytes; {self._largest} is the most")
            if flags & _COMPRESSED:
                raise InputError("a compressed message: this service takes them plain")
            if len(self._rest) < _HEAD.size + length:
                break
            text = bytes(self._rest[_HEAD.size : _HEAD.size + length])
            del self._rest[: _HEAD.size + length]
            if not flags & _LAST:
                found.append(message(text))
        return found

    def finish(self) -> None:
        """Nothing more comes."""
        if self._rest:
            raise InputError("the request ends in the middle of a message")


def message(text: bytes) -> dict[str, Any]:
    """A JSON object, or an InputError; an empty text is an empty message."""
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError("the request is not a JSON object")
    return found


def code_of(problem: Problem) -> str:
    """Connect's name for what went wrong."""
    named = _CODES.get(problem.kind)
    return named or ("internal" if problem.status >= 500 else "invalid_argument")


def status_of(code: str) -> int:
    """The status that a unary answer with that error has."""
    return _STATUS.get(code, 500)


def error_of(problem: Problem) -> dict[str, str]:
    """What a stream's end or a unary answer says of it."""
    return {"code": code_of(problem), "message": problem.message}
