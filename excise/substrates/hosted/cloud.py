"""The few things that a cloud's SDK is asked for; everything else is the same for all clouds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from excise.substrates.hosted.faults import Told
from excise.types import Spec


@dataclass(frozen=True, slots=True)
class Ran:
    """How a line ended. Text, because that is what SDKs give."""

    code: int
    out: str
    err: str = ""


class Running(Protocol):
    """A line under way."""

    async def wait(self) -> Ran: ...
    def heard(self) -> Ran:
        """What it has said so far, as far as the SDK tells."""
        ...


class Cloud(Protocol):
    """One provider, reached through its official SDK. Exceptions are the SDK's own; `told` reads them."""

    one_stream: bool
    """Whether both streams of a command come as one."""

    async def make(self, image: str | None, spec: Spec, labels: Mapping[str, str]) -> str: ...
    async def start(self, box: str, line: str, user: str | None) -> Running: ...
    async def put(self, box: str, path: str, data: bytes) -> None: ...
    async def get(self, box: str, path: str) -> bytes:
        """FileNotFoundError where there is none."""
        ...

    async def end(self, box: str) -> None: ...
    def listed(self, label: str) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        """The sandboxes that have this label at `1`, with all their labels."""
        ...

    def told(self, error: Exception) -> Told | None:
        """What the SDK's exception says; None for one that is not its."""
        ...

    def facts(self) -> dict[str, str]: ...
    async def close(self) -> None: ...
