"""The sandbox's files over HTTP."""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import IO

import msgspec
from aiohttp import web

from excise.errors import ExciseError, InputError
from excise.service.daytona import multipart, place
from excise.service.daytona.asked import Paths, Replace
from excise.service.daytona.call import Inside, answer, nothing
from excise.service.daytona.entries import info
from excise.service.daytona.errors import DAEMON, body_of
from excise.service.daytona.process import run
from excise.service.daytona.search import chosen, find_argv, grep_argv, matches
from excise.service.errors import TooLarge
from excise.service.files import PART_BYTES, Files
from excise.service.people import Person
from excise.service.problems import problem_of
from excise.substrates.base import Entry, EntryKind
from excise.types import MIB, Action

IN_MEMORY_BYTES = 4 * MIB
"""An upload up to this size is not put into a file of this host on its way."""

FILE_BYTES = 8 * 1024 * MIB
PATH_BYTES = 4096
DEEPEST = 32
MOST_PATHS = 1000
REPLACED_BYTES = 64 * MIB
SEARCH_S = 120.0
_OCTAL = re.compile(r"[0-7]{1,5}")


async def listed(call: Inside) -> web.StreamResponse:
    """What is in a directory, and below it if a depth is given."""
    top = await place.path(call, call.request.query.get("path") or ".")
    top = posixpath.normpath(top)
    depth = call.number("depth", 1, most=DEEPEST)
    files = call.cloud.files(call.box)
    if depth == 1:
        found = [(posixpath.join(top, each.name), each) for each in await files.entries(top)]
    else:
        found = [(each.path, each.entry) for each in await files.walk(top, depth=depth)]
    return answer([await _info(files, path, entry) for path, entry in found])


async def details(call: Inside) -> web.StreamResponse:
    path = posixpath.normpath(await place.path(call, call.query("path")))
    entry = await call.cloud.files(call.box).stat(path, follow=True)
    return answer(info(entry, path))


async def _info(files: Files, path: str, entry: Entry) -> dict[str, object]:
    """Links are told as what they lead to, if it is a directory."""
    if entry.kind is not EntryKind.LINK:
        return info(entry, path)
    try:
        target = await files.stat(path, follow=True)
    except OSError:
        return info(entry, path)
    return info(entry, path, directory=target.kind is EntryKind.DIRECTORY)


async def folder(call: Inside) -> web.StreamResponse:
    """Made with those above it; one that is there already is as good."""
    path = await place.path(call, call.query("path"))
    files, person = call.cloud.files(call.box), await place.person(call)
    mode = octal(call.request.query.get("mode") or "0755")
    try:
        await files.make_directory(path, mode=mode, person=person)
    except FileExistsError:
        if (await files.stat(path, follow=True)).kind is not EntryKind.DIRECTORY:
            raise
    return nothing(201)


async def delete(call: Inside) -> web.StreamResponse:
    path = await place.path(call, call.query("path"))
    files = call.cloud.files(call.box)
    if posixpath.normpath(path) == "/":
        raise InputError("the root of a sandbox cannot be deleted: delete the sandbox")
    entry = await files.stat(path)
    if entry.kind is EntryKind.DIRECTORY and not call.flag("recursive"):
        raise InputError("cannot delete directory without recursive flag")
    await files.remove(path)
    return nothing()


async def move(call: Inside) -> web.StreamResponse:
    source = await place.path(call, call.query("source"))
    to = await place.path(call, call.query("destination"))
    files = call.cloud.files(call.box)
    await files.stat(source)
    await files.rename(source, to, person=await place.person(call))
    return nothing(200)


async def permissions(call: Inside) -> web.StreamResponse:
    """Mode, owner and group, each only if it is given; owners by name or number."""
    path = await place.path(call, call.query("path"))
    files = call.cloud.files(call.box)
    entry = await files.stat(path, follow=True)
    if mode := call.request.query.get("mode"):
        await files.chmod(path, octal(mode))
    owner, group = call.request.query.get("owner"), call.request.query.get("group")
    if owner or group:
        uid = (await files.person(owner)).uid if owner else entry.uid
        gid = await _group(files, group) if group else entry.gid
        await files.chown(path, uid, gid)
    return nothing(200)


async def _group(files: Files, name: str) -> int:
    if name.isascii() and name.isdigit() and len(name) < 10:
        return int(name)
    for line in (await files.read("/etc/group")).decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if fields[0] == name and len(fields) > 2 and fields[2].isdigit():
            return int(fields[2])
    raise InputError(f"the sandbox has no group {name[:80]!r}")


async def find(call: Inside) -> web.StreamResponse:
    """Lines that hold a text, in all files below a directory."""
    path = await place.path(call, call.query("path"))
    await call.cloud.files(call.box).stat(path)
    action = Action(grep_argv(path, call.query("pattern")), timeout_s=SEARCH_S)
    found = await run(call, action)
    if found.exit_code > 1 and not found.stdout:
        raise InputError(found.text.strip()[:500])
    return answer(matches(found.stdout))


async def search(call: Inside) -> web.StreamResponse:
    """Files whose path matches a pattern."""
    path = posixpath.normpath(await place.path(call, call.query("path")))
    pattern = call.query("pattern")
    await call.cloud.files(call.box).stat(path)
    found = await run(call, Action(find_argv(path), timeout_s=SEARCH_S))
    return answer({"files": chosen(found.stdout, path, pattern)})


async def replace(call: Inside) -> web.StreamResponse:
    """One text for another in several files; each is told apart."""
    asked = await call.body(Replace)
    if not asked.pattern:
        raise InputError("pattern cannot be empty")
    told = []
    for name in asked.files[:MOST_PATHS]:
        try:
            await _replace(call, await place.path(call, name), asked)
            told.append({"file": name, "success": True})
        except (OSError, InputError) as error:
            told.append({"file": name, "success": False, "error": problem_of(error).message})
    return answer(told)


async def _replace(call: Inside, path: str, asked: Replace) -> None:
    files = call.cloud.files(call.box)
    entry = await files.stat(path, follow=True)
    before = await files.read(path, most=REPLACED_BYTES)
    after = before.replace(asked.pattern.encode(), asked.new_value.encode())
    if after != before:
        person = Person("", entry.uid, entry.gid, "/")
        await files.write(path, after, mode=entry.mode, person=person)


async def upload(call: Inside) -> web.StreamResponse:
    """One file: its path in the query, the file as the only part."""
    path = await place.path(call, call.query("path"))
    async for _, part in _parts(call):
        if part is not None:
            entry = await _write(call, path, part)
            return answer({"path": path, "bytes": entry.size})
    raise InputError("the form holds no file")


async def upload_many(call: Inside) -> web.StreamResponse:
    """Any number of files; the path of each comes before it."""
    paths: dict[str, str] = {}
    told: list[dict[str, object]] = []
    async for name, part in _parts(call):
        index, _, kind = name.removeprefix("files[").partition("].")
        if kind == "path" and part is not None:
            data = part.read(PATH_BYTES + 1)
            if not 0 < len(data) <= PATH_BYTES:
                raise InputError(f"{name}: a path is 1 to {PATH_BYTES} bytes")
            paths[index] = data.decode("utf-8", "replace").strip()
        elif kind == "file" and part is not None:
            if index not in paths:
                raise InputError(f"{name}: its path was not given before it")
            path = await place.path(call, paths[index])
            told.append({"path": path, "bytes": (await _write(call, path, part)).size})
    return answer({"files": told})


async def _write(call: Inside, path: str, part: IO[bytes]) -> Entry:
    person = await place.person(call)
    return await call.cloud.files(call.box).write(path, _pieces(part), person=person)


def _pieces(part: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: part.read(PART_BYTES), b"")


async def _parts(call: Inside) -> AsyncIterator[tuple[str, IO[bytes] | None]]:
    """The parts of a form, each whole before it is handed out: a sandbox takes a file as fast as it is read."""
    reader = multipart.Reader(call.request.headers.get("Content-Type", ""))
    name, size = "", 0
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as spool:
        async for data in call.request.content.iter_any():
            for event in reader.feed(data):
                match event:
                    case multipart.Begin(name, _):
                        spool.seek(0)
                        spool.truncate()
                        size = 0
                    case multipart.Data(piece):
                        size += len(piece)
                        if size > FILE_BYTES:
                            raise TooLarge(f"a file of more than {FILE_BYTES} bytes")
                        spool.write(piece)
                    case multipart.End():
                        spool.seek(0)
                        yield name, spool
    reader.finish()


async def download(call: Inside) -> web.StreamResponse:
    """One file as it is."""
    path = await place.path(call, call.query("path"))
    files = call.cloud.files(call.box)
    entry = await _readable(files, path)
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    response.content_length = entry.size
    await response.prepare(call.request)
    sent = 0
    async for part in files.parts(path, most=entry.size):
        sent += len(part)
        await response.write(part)
    if sent < entry.size:
        raise ConnectionResetError("the file became shorter while it was read")
    await response.write_eof()
    return response


async def download_many(call: Inside) -> web.StreamResponse:
    """Files as parts of one answer; what cannot be had is a part that says why."""
    paths = (await call.body(Paths)).paths
    if not 0 < len(paths) <= MOST_PATHS:
        raise InputError(f"give 1 to {MOST_PATHS} paths")
    boundary = multipart.new_boundary()
    kind = f"multipart/form-data; boundary={boundary}"
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(call.request)
    for name in paths:
        await _send(call, response, boundary, name)
    await response.write(multipart.last(boundary))
    await response.write_eof()
    return response


async def _send(call: Inside, response: web.StreamResponse, boundary: str, name: str) -> None:
    files = call.cloud.files(call.box)
    try:
        path = await place.path(call, name)
        entry = await _readable(files, path)
        first, rest = await _begun(files, path)
    except (OSError, ExciseError) as error:
        problem = problem_of(error)
        told = body_of(problem, name, "", "") | {"source": DAEMON}
        head = multipart.part(boundary, "error", name, kind="application/json")
        await response.write(head + msgspec.json.encode(told) + multipart.CLOSED)
        return
    size = entry.size
    head = multipart.part(boundary, "file", name, kind="application/octet-stream", size=size)
    if len(first) < PART_BYTES:
        await response.write(head + first + multipart.CLOSED)
        return
    await response.write(head + first)
    async for part in rest:
        await response.write(part)
    await response.write(multipart.CLOSED)


async def _begun(files: Files, path: str) -> tuple[bytes, AsyncIterator[bytes]]:
    """A file that could be read: its first part, and the rest."""
    parts = files.parts(path)
    return await anext(parts, b""), parts


async def _readable(files: Files, path: str) -> Entry:
    entry = await files.stat(path, follow=True)
    if entry.kind is EntryKind.DIRECTORY:
        raise IsADirectoryError(21, "it is a directory", path)
    if entry.kind is not EntryKind.FILE:
        raise InputError(f"{path} is no file")
    return entry


def octal(text: str) -> int:
    """Permissions as `0755`."""
    if not _OCTAL.fullmatch(text):
        raise InputError(f"a mode is an octal number such as 0755, not {text[:20]!r}")
    return int(text, 8) & 0o7777
