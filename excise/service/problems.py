"""What an error means to a client: whose fault it is, in which phase, and whether asking again makes sense.

Every door renders the same `Problem` in the words of its protocol. A failed command is no problem at all: it is
an `Observation`, and no error of the infrastructure can be mistaken for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from excise.errors import (
    DeadlineExceeded,
    DiskFull,
    ExciseError,
    ImageError,
    InputError,
    LayerError,
    LifecycleError,
    Overloaded,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)
from excise.service.errors import Conflict, Refused, TooLarge, Unauthorized, Unsupported


class Fault(StrEnum):
    """Who can do something about it."""

    CALLER = "caller"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True)
class Problem:
    """One error as a client hears it. `kind` is stable; `message` is for people."""

    status: int
    kind: str
    message: str
    fault: Fault
    phase: str | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    substrate: str | None = None
    errno: int | None = None
    """Of an error about a path."""


NOT_FOUND = Problem(404, "not_found", "there is nothing here", Fault.CALLER)

_CALLER: tuple[tuple[type[BaseException], int, str], ...] = (
    (Unauthorized, 401, "unauthorized"),
    (Conflict, 409, "conflict"),
    (LifecycleError, 409, "wrong_state"),
    (TooLarge, 413, "too_large"),
    (Unsupported, 501, "unsupported"),
    (ImageError, 400, "image"),
    (InputError, 400, "input"),
    (FileNotFoundError, 404, "file_not_found"),
    (FileExistsError, 409, "file_exists"),
    (NotADirectoryError, 400, "not_a_directory"),
    (IsADirectoryError, 400, "is_a_directory"),
    (PermissionError, 403, "permission_denied"),
)
_INFRASTRUCTURE: tuple[tuple[type[BaseException], int, str], ...] = (
    (SandboxGone, 404, "sandbox_gone"),
    (DeadlineExceeded, 504, "deadline_exceeded"),
    (SubstrateUnavailable, 503, "unavailable"),
    (Overloaded, 503, "overloaded"),
    (SubstrateError, 502, "substrate"),
    (DiskFull, 507, "disk_full"),
    (LayerError, 502, "layer"),
)


def problem_of(error: BaseException) -> Problem:
    """What to tell of an error; what nobody foresaw is told as such, without its inside."""
    if isinstance(error, Refused):
        status, kind = (429, "too_many") if error.theirs else (503, "overloaded")
        fault = Fault.CALLER if error.theirs else Fault.INFRASTRUCTURE
        phase, wait_s = str(error.phase), error.retry_after_s
        return Problem(status, kind, error.message, fault, phase, True, wait_s)
    for known, status, kind in _INFRASTRUCTURE:
        if isinstance(error, known):
            return _of_infrastructure(error, status, kind)
    for known, status, kind in _CALLER:
        if isinstance(error, known):
            number = error.errno if isinstance(error, OSError) else None
            return Problem(status, kind, _said(error), Fault.CALLER, errno=number)
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return Problem(400, "file", _said(error), Fault.CALLER, errno=error.errno)
    return Problem(
        500, "internal", "the service failed; its log has the rest", Fault.INFRASTRUCTURE
    )


def _of_infrastructure(error: BaseException, status: int, kind: str) -> Problem:
    if not isinstance(error, SubstrateError):
        return Problem(status, kind, str(error), Fault.INFRASTRUCTURE)
    again = 1.0 if error.retryable else None
    if error.retry_after_s is not None:
        again = error.retry_after_s
    return Problem(
        status,
        kind,
        error.message,
        Fault.INFRASTRUCTURE,
        str(error.phase),
        error.retryable,
        again,
        error.substrate,
    )


def _said(error: BaseException) -> str:
    if isinstance(error, OSError):
        where = error.filename if isinstance(error.filename, str) else ""
        return ": ".join(part for part in (where, error.strerror or str(error)) if part)
    return str(error) if isinstance(error, ExciseError) else type(error).__name__
