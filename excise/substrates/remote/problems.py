"""A service's refusal as the exception that the same failure is everywhere else. Pure."""

from __future__ import annotations

import errno
import os

import msgspec

from excise.errors import (
    DeadlineExceeded,
    DiskFull,
    ExciseError,
    InputError,
    LifecycleError,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)
from excise.substrates.remote.wire import ErrorWire, RefusalWire

NAME = "service"

_OF_SUBSTRATES: dict[str, type[SubstrateError]] = {
    "sandbox_gone": SandboxGone,
    "deadline_exceeded": DeadlineExceeded,
    "unavailable": SubstrateUnavailable,
    "unauthorized": SubstrateUnavailable,
    "overloaded": Overloaded,
    "too_many": Overloaded,
}
_OF_FILES = {
    "file_not_found": errno.ENOENT,
    "file_exists": errno.EEXIST,
    "not_a_directory": errno.ENOTDIR,
    "is_a_directory": errno.EISDIR,
    "permission_denied": errno.EACCES,
}
_OF_CALLERS: dict[str, type[ExciseError]] = {
    "wrong_state": LifecycleError,
    "disk_full": DiskFull,
}

_decode = msgspec.json.Decoder(RefusalWire).decode


def refusal_of(status: int, body: bytes) -> ErrorWire:
    """What an answer that is no success says; something honest where it says nothing we know."""
    try:
        return _decode(body).error
    except msgspec.MsgspecError:
        said = body[:200].decode("utf-8", "replace").strip()
        text = f"status {status}{': ' if said else ''}{said}"
        kind = "overloaded" if status in {429, 503} else "answer"
        again = status in {429, 502, 503, 504}
        return ErrorWire(
            kind, text, "caller" if status < 500 else "infrastructure", retryable=again
        )


def error_of(told: ErrorWire, phase: Phase) -> Exception:
    """The exception to raise. `phase` is what we were doing, where the service does not say."""
    if told.kind in _OF_FILES or told.errno is not None:
        number = told.errno or _OF_FILES[told.kind]
        return OSError(number, os.strerror(number), told.message)
    request = f" (request {told.request_id})" if told.request_id else ""
    known = _OF_SUBSTRATES.get(told.kind)
    if known is None and told.fault == "caller":
        return _OF_CALLERS.get(told.kind, InputError)(told.message + request)
    if told.kind in _OF_CALLERS:
        return _OF_CALLERS[told.kind](told.message + request)
    where = _phase(told.phase, phase)
    failed = (known or SubstrateError)(
        told.message + request,
        substrate=told.substrate or NAME,
        phase=where,
        retryable=told.retryable,
    )
    failed.retry_after_s = told.retry_after_s
    return failed


def unreachable(why: str, phase: Phase, *, retryable: bool = True) -> SubstrateError:
    """The service did not answer, or not in HTTP."""
    return SubstrateError(why, substrate=NAME, phase=phase, retryable=retryable)


def _phase(said: str | None, ours: Phase) -> Phase:
    try:
        return Phase(said) if said else ours
    except ValueError:
        return ours
