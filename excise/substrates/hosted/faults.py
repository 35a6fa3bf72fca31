"""Whatever a cloud refuses or breaks, as one of a few kinds, each with what to think of a retry. Pure.

A rate limit passes by itself, a full quota of sandboxes when some have ended, an empty account not at all: what a
trainer does next differs, so they are told apart, by status first and by the provider's own words second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from excise.errors import (
    DeadlineExceeded,
    DiskFull,
    ExciseError,
    InputError,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)


class Kind(StrEnum):
    """What went wrong, in the caller's terms."""

    RATE_LIMITED = "rate limited"
    TOO_MANY_SANDBOXES = "too many sandboxes at once"
    NOT_PAID = "quota or credit used up"
    UNAUTHORIZED = "the key is missing, wrong or expired"
    GONE = "no such sandbox"
    MISSING_IMAGE = "no such image"
    REFUSED = "refused as asked"
    DISK_FULL = "disk full"
    NO_CAPACITY = "no capacity"
    LATE = "no answer in time"
    UNREACHABLE = "not reached"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Told:
    """What an SDK's exception says: its type's name, the HTTP status if there was one, its words, its headers."""

    type: str
    message: str
    status: int | None = None
    headers: Mapping[str, str] = ()  # type: ignore[assignment]

    @property
    def retry_after_s(self) -> float | None:
        """When to ask again, where the provider says so in seconds."""
        for name, value in dict(self.headers).items():
            if name.lower() == "retry-after" and re.fullmatch(r"\d+(\.\d+)?", value.strip()):
                return float(value)
        return None


_PASSES = frozenset(
    {Kind.RATE_LIMITED, Kind.TOO_MANY_SANDBOXES, Kind.NO_CAPACITY, Kind.LATE, Kind.UNREACHABLE}
)
"""A retry is sane: at once where it was the network, later where it was a limit."""

_WORDS: tuple[tuple[str, Kind], ...] = (
    (r"credit|billing|payment|spend(ing)? limit|past due|suspended", Kind.NOT_PAID),
    (r"(concurren\w+|maximum number|too many|total).{0,40}sandbox", Kind.TOO_MANY_SANDBOXES),
    (r"sandbox.{0,40}(limit|quota) (reached|exceeded)|quota", Kind.TOO_MANY_SANDBOXES),
    (r"(template|snapshot|image).{0,80}(not found|does not exist|no such)", Kind.MISSING_IMAGE),
    (r"no (template|snapshot|image)\b", Kind.MISSING_IMAGE),
    (r"api key|unauthori[sz]ed|token.{0,20}(missing|invalid|expired)|unauthenticated", Kind.UNAUTHORIZED),
    (r"sandbox.{0,80}(not found|was not found|is not running|has already|does not exist)", Kind.GONE),
    (r"no space left|disk.{0,20}(full|quota)", Kind.DISK_FULL),
    (r"capacity|no (available )?runners?", Kind.NO_CAPACITY),
)  # fmt: skip
_TYPES: tuple[tuple[str, Kind], ...] = (
    ("RateLimit", Kind.RATE_LIMITED),
    ("ResourceExhausted", Kind.TOO_MANY_SANDBOXES),
    ("SandboxNotFound", Kind.GONE),
    ("SandboxNotRunning", Kind.GONE),
    ("SandboxTerminated", Kind.GONE),
    ("SandboxTimeout", Kind.GONE),
    ("NotEnoughSpace", Kind.DISK_FULL),
    ("Auth", Kind.UNAUTHORIZED),
    ("ServiceBusy", Kind.NO_CAPACITY),
    ("QueueTimeout", Kind.NO_CAPACITY),
    ("Unreachable", Kind.UNREACHABLE),
    ("Connection", Kind.UNREACHABLE),
    ("Connect", Kind.UNREACHABLE),
    ("Timeout", Kind.LATE),
    ("InvalidArgument", Kind.REFUSED),
    ("Invalid", Kind.REFUSED),
    ("BadRequest", Kind.REFUSED),
)
_STATUS = {
    400: Kind.REFUSED, 401: Kind.UNAUTHORIZED, 402: Kind.NOT_PAID, 403: Kind.UNAUTHORIZED, 404: Kind.GONE,
    408: Kind.LATE, 410: Kind.GONE, 422: Kind.REFUSED, 429: Kind.RATE_LIMITED, 502: Kind.UNREACHABLE,
    503: Kind.NO_CAPACITY, 504: Kind.LATE, 507: Kind.DISK_FULL,
}  # fmt: skip
_LIMITS = frozenset({Kind.NOT_PAID, Kind.TOO_MANY_SANDBOXES})


def kind_of(told: Told, phase: Phase) -> Kind:
    """The kind. While a sandbox is being made nothing can be gone: what is not found then is what it is made of."""
    said = [kind for words, kind in _WORDS if re.search(words, told.message, re.IGNORECASE)]
    found = _STATUS.get(told.status or 0) or next(
        (kind for name, kind in _TYPES if name in told.type), None
    )
    if found in {Kind.RATE_LIMITED, Kind.UNAUTHORIZED}:
        found = next((kind for kind in said if kind in _LIMITS), found)
    elif found in {None, Kind.REFUSED, Kind.GONE} and said:
        found = said[0]
    if found is None:
        return Kind.NO_CAPACITY if (told.status or 0) >= 500 else Kind.BROKEN
    if found is Kind.GONE and phase is Phase.CREATE:
        return Kind.MISSING_IMAGE
    return found


def error_of(told: Told, cloud: str, phase: Phase) -> ExciseError:
    """The exception to raise."""
    kind = kind_of(told, phase)
    words = " ".join(told.message.split())[:400]
    text = f"{kind}: {words}" if words else f"{kind} ({' '.join(told.type.split())})"
    if kind in {Kind.REFUSED, Kind.MISSING_IMAGE}:
        return InputError(f"{cloud}: {text}")
    if kind is Kind.DISK_FULL:
        return DiskFull(f"{cloud}: {text}")
    failed = _CLASSES.get(kind, SubstrateError)(
        text, substrate=cloud, phase=phase, retryable=kind in _PASSES
    )
    failed.retry_after_s = told.retry_after_s if kind in _PASSES else None
    return failed


_CLASSES: Mapping[Kind, type[SubstrateError]] = {
    Kind.RATE_LIMITED: Overloaded,
    Kind.TOO_MANY_SANDBOXES: Overloaded,
    Kind.NO_CAPACITY: Overloaded,
    Kind.NOT_PAID: SubstrateUnavailable,
    Kind.UNAUTHORIZED: SubstrateUnavailable,
    Kind.GONE: SandboxGone,
    Kind.LATE: DeadlineExceeded,
}
