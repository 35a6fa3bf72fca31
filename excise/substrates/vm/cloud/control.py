"""What a cloud has to be able to do, and what can be wrong with it: a driver is these four verbs and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class CloudError(Exception):
    """The control plane refused, for a reason that is none of those below."""


class NoCapacity(CloudError):
    """There is no machine of that kind now, or the quota is reached: another time, another place."""


class Throttled(CloudError):
    """Asked too often; `after_s` is when to ask again, where that is said."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Unknown(CloudError):
    """There is no such machine (any more)."""


class BadRequest(CloudError):
    """It will never be granted: a wrong image, type, key or credential."""


class State(StrEnum):
    """A machine, as its cloud sees it."""

    PENDING = "pending"
    RUNNING = "running"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Look:
    """What the control plane says of one machine."""

    state: State
    address: str | None = None
    port: int = 22


@dataclass(frozen=True, slots=True)
class Owned:
    """A machine that carries our labels."""

    id: str
    labels: Mapping[str, str]


class CloudControl(Protocol):
    """One account at one provider. Nothing is retried in here: whoever calls decides, and stamps what that took."""

    @property
    def name(self) -> str: ...

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        """Ask for a machine; its id, which `look` may not know for a moment."""
        ...

    async def look(self, machine: str) -> Look: ...

    async def delete(self, machine: str) -> None:
        """Idempotent: what is not there is deleted."""
        ...

    async def owned(self) -> Sequence[Owned]:
        """Every machine with our label, all pages of it."""
        ...

    async def close(self) -> None: ...
