"""`/files` and `/health`: contents of files as plain HTTP, for SDKs with a token and for anybody with a signed address."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar
from urllib.parse import quote

from aiohttp import BodyPartReader, MultipartReader, hdrs, web

from excise.errors import InputError, Phase, SandboxGone
from excise.service.doors import Desk
from excise.service.e2b.filesystem import Place
from excise.service.e2b.inside import inside
from excise.service.e2b.labels import Labels, labels_of
from excise.service.e2b.reach import address_of, awake, reached, user_of
from excise.service.e2b.signing import Deed, signed
from excise.service.errors import NAME, TooLarge, Unauthorized
from excise.service.files import PART_BYTES
from excise.service.sandbox import Sandbox
from excise.service.spool import spooled
from excise.substrates.base import EntryKind
from excise.types import GIB, MIB

_NAMED = re.compile(r';\s*filename="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
S = TypeVar("S", bound=web.StreamResponse)

LARGEST_UPLOAD = 4 * GIB
MOST_PARTS = 1000


class Transfers:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.get("/health", self._health)
        yield web.get("/files", self._read, allow_head=False)
        yield web.post("/files", self._write)

    async def _health(self, request: web.Request) -> web.Response:
        await reached(self._desk, request.headers)
        return web.Response(status=204)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        place = await self._place(request, Deed.READ)
        path = place.path(request.query.get("path", ""))
        entry = await place.files.stat(path, follow=True)
        if entry.kind is EntryKind.DIRECTORY:
            raise InputError(f"path '{path}' is a directory")
        if entry.kind is not EntryKind.FILE:
            raise InputError(f"path '{path}' is not a regular file")
        name = quote(path.rpartition("/")[2], safe="")
        headers = {
            hdrs.CONTENT_TYPE: "application/octet-stream",
            hdrs.CONTENT_DISPOSITION: f"attachment; filename*=UTF-8''{name}",
            hdrs.VARY: hdrs.ACCEPT_ENCODING,
            "X-Content-Type-Options": "nosniff",
        }
        parts = place.files.parts(path)
        first = await anext(parts, b"")
        if len(first) < PART_BYTES:
            answer = web.Response(body=first, headers=headers)
            return _squeezed(answer, request)
        return await _streamed(request, headers, first, parts)

    async def _write(self, request: web.Request) -> web.Response:
        place = await self._place(request, Deed.WRITE)
        labels = labels_of(request.headers.items())
        found = []
        async for to, content in _uploads(request):
            path = place.path(to)
            async with spooled(content, LARGEST_UPLOAD) as pieces:
                entry = await place.files.write(path, pieces, person=place.person)
            if (entry.uid, entry.gid) != (place.person.uid, place.person.gid):
                await place.files.chown(path, place.person.uid, place.person.gid)
            inside(place.sandbox).labels.said(path, entry, labels)
            found.append(_written(path, labels))
        if not found:
            raise InputError("no file was sent: add one as the form's field `file`")
        return web.json_response(found)

    async def _place(self, request: web.Request, deed: Deed) -> Place:
        if "signature" in request.query and "X-Access-Token" not in request.headers:
            sandbox = self._by_signature(request, deed)
            await awake(self._desk, sandbox)
        else:
            sandbox = await reached(self._desk, request.headers)
        name = request.query.get("username") or user_of(request.headers)
        person = await inside(sandbox).person(self._desk, sandbox, name)
        return Place(sandbox, self._desk.cloud.files(sandbox), person)

    def _by_signature(self, request: web.Request, deed: Deed) -> Sandbox:
        """The sandbox whose token signed this. Where neither host nor header names it, each is tried."""
        given = request.query
        claim = signed(
            given.get("path", ""),
            deed,
            given.get("username", ""),
            given.get("signature_expiration"),
        )
        address = address_of(request.headers)
        for sandbox in self._desk.cloud.census.living():
            if address is not None and sandbox.id != address[0]:
                continue
            if claim.holds(given["signature"], sandbox.token):
                claim.must_live(time.time())
                return sandbox
        if address is not None and not any(
            each.id == address[0] for each in self._desk.cloud.census.living()
        ):
            raise SandboxGone(f"there is no sandbox {address[0]}", substrate=NAME, phase=Phase.RUN)
        raise Unauthorized("invalid signature")


async def _uploads(request: web.Request) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
    """The files of a request: its body is one, or a form with several, each under its path as a file's name."""
    path = request.query.get("path")
    if not request.content_type.startswith("multipart/"):
        if path is None:
            raise InputError("where to? Give the path in the address")
        yield path, request.content.iter_any()
        return
    number = 0
    form = await _form(request)
    while (part := await _next(form)) is not None:
        if not isinstance(part, BodyPartReader) or part.name != "file":
            raise InputError("a form of files has fields named `file`, and nothing else")
        number += 1
        if number > MOST_PARTS:
            raise TooLarge(f"more than {MOST_PARTS} files in one form")
        to = path if path is not None else named(part.headers.get(hdrs.CONTENT_DISPOSITION, ""))
        if not to:
            raise InputError("a file of the form says not where to: its name is its path")
        if path is not None and number > 1:
            raise InputError("several files for one path")
        yield to, _chunks(part)


async def _form(request: web.Request) -> MultipartReader:
    try:
        return await request.multipart()
    except (ValueError, AssertionError) as error:
        raise InputError(f"this is no form: {error}") from None


async def _next(form: MultipartReader) -> MultipartReader | BodyPartReader | None:
    try:
        return await form.next()
    except ValueError as error:
        raise InputError(f"this is no form: {error}") from None


def named(disposition: str) -> str | None:
    """The file's name that a part of a form has. Here it is a path, which general parsers make less of."""
    found = _NAMED.search(disposition)
    return _ESCAPED.sub(r"\1", found[1]) if found else None


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(MIB):
        yield chunk


async def _streamed(
    request: web.Request, headers: dict[str, str], first: bytes, parts: AsyncIterator[bytes]
) -> web.StreamResponse:
    answer = web.StreamResponse(headers=headers)
    _squeezed(answer, request)
    await answer.prepare(request)
    await answer.write(first)
    async for part in parts:
        await answer.write(part)
    await answer.write_eof()
    return answer


def _squeezed(answer: S, request: web.Request) -> S:
    """Compressed for who asks for just that; to take it is what every client offers, and seldom worth it."""
    if request.headers.get(hdrs.ACCEPT_ENCODING, "").strip().lower() == "gzip":
        answer.enable_compression(web.ContentCoding.gzip)
    return answer


def _written(path: str, labels: Labels) -> dict[str, object]:
    told: dict[str, object] = {"name": path.rpartition("/")[2], "path": path, "type": "file"}
    return told | {"metadata": dict(labels)} if labels else told
