"""One operation of the native API: how it is asked for, what it takes and gives, and what does it.

The table of operations is the only description there is: routes and the OpenAPI document are both made of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from aiohttp import web

from excise.errors import InputError
from excise.service.doors import Desk, bearer
from excise.service.errors import TooLarge
from excise.service.keys import Key, Scope
from excise.service.sandbox import Sandbox
from excise.types import MIB

JSON = "application/json"
LINES = "application/x-ndjson"
BYTES = "application/octet-stream"
TEXT = "text/plain"

JSON_BYTES = 96 * MIB
"""The most a JSON body may hold: an action's stdin of 64 MiB in base64, and some more."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """One parameter behind the question mark. `kind` is str, int, float or bool."""

    name: str
    kind: type
    says: str
    required: bool = False
    least: int | None = None
    most: int | None = None


@dataclass(slots=True)
class Call:
    """One request as an operation sees it."""

    desk: Desk
    request: web.Request
    key: Key
    body: Any
    operation: Operation

    @property
    def owner(self) -> str:
        return self.key.owner

    def sandbox(self) -> Sandbox:
        """The caller's sandbox that the path names."""
        return self.desk.cloud.find(self.key.owner, self.request.match_info["id"])

    def text(self, name: str) -> str | None:
        return cast("str | None", self._asked(name))

    def number(self, name: str) -> int | None:
        return cast("int | None", self._asked(name))

    def flag(self, name: str) -> bool:
        return bool(self._asked(name))

    def path(self) -> str:
        """The path in the sandbox that is asked about."""
        return cast("str", self._asked("path"))

    def _asked(self, name: str) -> object:
        query = next(each for each in self.operation.query if each.name == name)
        return _parsed(query, self.request.query.getall(name, []))


Handle: TypeAlias = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """`takes` and `gives` are types of the wire; bytes where a body is bytes; None where there is none."""

    method: str
    path: str
    says: str
    handle: Handle
    takes: Any = None
    gives: Any = None
    status: int = 200
    query: tuple[Query, ...] = ()
    headers: tuple[Query, ...] = ()
    scope: Scope | None = Scope.ALL
    """None: anybody."""
    lines: bool = False
    """`gives` comes as one JSON value a line, as long as there is something to say."""
    decoder: msgspec.json.Decoder[Any] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """A name for clients that are generated."""
        return self.handle.__name__

    def route(self, desk: Desk) -> web.RouteDef:
        """It as a route of an application."""
        decode = None
        if self.takes is not None and self.takes is not bytes:
            decode = msgspec.json.Decoder(self.takes).decode
        encode = msgspec.json.Encoder().encode
        handle, scope, status, gives = self.handle, self.scope, self.status, self.gives

        async def answer(request: web.Request) -> web.StreamResponse:
            key = NOBODY if scope is None else desk.key(bearer(request), scope)
            body = None if decode is None else await _decoded(request, decode)
            found = await handle(Call(desk, request, key, body, self))
            if isinstance(found, web.StreamResponse):
                return found
            if gives is None:
                return web.Response(status=status)
            return web.Response(body=encode(found), status=status, content_type=JSON)

        return web.route(self.method, f"/v1{self.path}", answer)


NOBODY = Key("", "", Scope.WATCH, b"", 0.0)


async def _decoded(request: web.Request, decode: Callable[[bytes], T]) -> T:
    length = request.content_length
    if length is not None and length > JSON_BYTES:
        raise TooLarge(f"a body of {length} bytes: {JSON_BYTES} are the most")
    return decoded(decode, await body_of(request, JSON_BYTES))


def decoded(decode: Callable[[bytes], T], data: bytes) -> T:
    """A body as the value that is asked for; an InputError says where it is something else."""
    try:
        return decode(data or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the body is not what this takes: {error}") from error


async def body_of(request: web.Request, most: int) -> bytes:
    """A whole body of at most so many bytes."""
    if request.content_length is not None and request.content_length <= min(most, MIB):
        return await request.read()
    parts, size = [], 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > most:
            raise TooLarge(f"a body of more than {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _parsed(query: Query, given: list[str]) -> object:
    if not given:
        if query.required:
            raise InputError(f"the parameter {query.name} is missing: {query.says}")
        return None
    if len(given) > 1:
        raise InputError(f"the parameter {query.name} is given {len(given)} times")
    text = given[0]
    if query.kind is bool:
        if text not in {"true", "false"}:
            raise InputError(f"{query.name} is true or false, not {text[:40]!r}")
        return text == "true"
    if query.kind is str:
        return _bounded(query, text, len(text))
    try:
        number = query.kind(text) if text.isascii() and len(text) < 40 else None
    except ValueError:
        number = None
    if number is None or number != number:  # noqa: PLR0124  # the one number that is not itself
        raise InputError(f"{query.name} is a number, not {text[:40]!r}")
    return _bounded(query, number, number)


def _bounded(query: Query, value: object, size: float) -> object:
    if (query.least is not None and size < query.least) or (
        query.most is not None and size > query.most
    ):
        raise InputError(f"{query.name} is out of bounds ({query.least} to {query.most})")
    return value
