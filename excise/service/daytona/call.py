"""One request of the SDK, as its handler wants it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from excise.errors import InputError
from excise.service.cloud import Cloud
from excise.service.daytona.asked import read
from excise.service.daytona.makings import Makings
from excise.service.daytona.room import Room, room_of
from excise.service.daytona.shares import Shares
from excise.service.daytona.versions import VERSION, version_of
from excise.service.doors import Desk
from excise.service.errors import TooLarge
from excise.service.sandbox import Sandbox
from excise.types import MIB

T = TypeVar("T")

BODY_BYTES = 32 * MIB
"""The most a JSON body may hold. Files come in parts and are not bound by this."""


@dataclass(slots=True)
class Call:
    """Who asks for what. `words` are the variables of the path, in order."""

    desk: Desk
    request: web.Request
    owner: str
    words: tuple[str, ...]
    makings: Makings
    shares: Shares

    @property
    def cloud(self) -> Cloud:
        return self.desk.cloud

    @property
    def origin(self) -> str:
        """The service as this client reaches it."""
        return f"{self.request.scheme}://{self.request.host}"

    @property
    def version(self) -> tuple[int, int]:
        """Of the SDK that asks."""
        return version_of(self.request.headers.get(VERSION))

    async def body(self, kind: type[T]) -> T:
        """The JSON body, checked."""
        return read(await self.bytes(BODY_BYTES), kind)

    async def bytes(self, most: int) -> bytes:
        """The whole body; TooLarge beyond `most`."""
        size = self.request.content_length
        parts, length = [], 0
        if size is None or size <= most:
            async for part in self.request.content.iter_any():
                parts.append(part)
                length += len(part)
                if length > most:
                    break
            else:
                return b"".join(parts)
        raise TooLarge(f"a body of more than {most} bytes")

    def query(self, name: str) -> str:
        """A parameter that must be there."""
        value = self.request.query.get(name)
        if not value:
            raise InputError(f"the parameter {name} is missing")
        return value

    def number(self, name: str, default: int, *, least: int = 1, most: int = 2**31) -> int:
        """A parameter that is a whole number."""
        text = self.request.query.get(name)
        return default if not text else whole(text, name, least, most)

    def flag(self, name: str) -> bool:
        return self.request.query.get(name, "").lower() in {"true", "1"}


class Here(Protocol):
    """A sandbox as what is asked of it needs it, whichever way the request took."""

    @property
    def cloud(self) -> Cloud: ...
    @property
    def box(self) -> Sandbox: ...
    @property
    def room(self) -> Room: ...


@dataclass(slots=True)
class Inside(Call):
    """A request into one sandbox."""

    box: Sandbox

    @property
    def room(self) -> Room:
        return room_of(self.box)


Control: TypeAlias = Callable[[Call], Awaitable[web.StreamResponse]]
Toolbox: TypeAlias = Callable[[Inside], Awaitable[web.StreamResponse]]


def answer(value: Any, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json"
    )


def nothing(status: int = 204) -> web.Response:
    """An answer without a body."""
    return web.Response(status=status)


def whole(text: str, name: str, least: int, most: int) -> int:
    """A whole number in these bounds, or InputError."""
    if text.isascii() and text.lstrip("-").isdigit() and len(text) < 20:
        number = int(text)
        if least <= number <= most:
            return number
    raise InputError(f"{name} is a whole number from {least} to {most}, not {text[:40]!r}")
