"""Operations on the files of a sandbox. Paths are absolute, and resolved in the sandbox."""

from __future__ import annotations

from contextlib import aclosing

from aiohttp import web

from excise.service.files import Files
from excise.service.native.lines import Lines
from excise.service.native.operation import BYTES, Call, Operation, Query
from excise.service.people import Person
from excise.service.spool import spooled
from excise.service.watch import watching
from excise.substrates.remote import wire
from excise.substrates.remote.convert import entry_wire
from excise.types import MIB

BEAT_S = 10.0
FILE_BYTES = 512 * MIB

PATH = Query("path", str, "An absolute path in the sandbox.", required=True, least=1, most=4096)
DEPTH = Query("depth", int, "How many levels down.", least=1, most=64)
LINK = Query("follow", bool, "Tell of what a link leads to.")
MODE = Query("mode", int, "Permissions, as a decimal number.", least=0, most=0o7777)
USER = Query("user", str, "Whose it becomes.", least=1, most=255)
OFFSET = Query("offset", int, "From which byte on.", least=0, most=2**53)
MOST = Query("most", int, "How many bytes at most.", least=0, most=2**53)
TREE = Query("tree", bool, "With all that is in a directory; it is so unless this is false.")
EVERY = Query("every_s", float, "How often to look.", least=0, most=3600)


async def read_file(call: Call) -> web.StreamResponse:
    files, path = _files(call), call.path()
    offset, most = call.number("offset") or 0, call.number("most")
    async with aclosing(files.parts(path, offset=offset, most=most)) as parts:
        first = await anext(parts, b"")
        response = web.StreamResponse()
        response.content_type = BYTES
        await response.prepare(call.request)
        await response.write(first)
        async for part in parts:
            await response.write(part)
        await response.write_eof()
    return response


async def write_file(call: Call) -> wire.EntryWire:
    files, path = _files(call), call.path()
    mode = call.number("mode")
    person = await _person(files, call)
    async with spooled(call.request.content.iter_chunked(MIB), FILE_BYTES) as pieces:
        entry = await files.write(path, pieces, mode=0o644 if mode is None else mode, person=person)
    return entry_wire(path, entry)


async def remove_path(call: Call) -> None:
    tree = call.flag("tree") or "tree" not in call.request.query
    await _files(call).remove(call.path(), tree=tree)


async def stat_path(call: Call) -> wire.EntryWire:
    path = call.path()
    return entry_wire(path, await _files(call).stat(path, follow=call.flag("follow")))


async def list_directory(call: Call) -> wire.EntriesWire:
    found = await _files(call).walk(call.path(), depth=call.number("depth") or 1)
    return wire.EntriesWire([entry_wire(each.path, each.entry) for each in found])


async def make_directory(call: Call) -> wire.EntryWire:
    files, asked = _files(call), call.body
    person = None if asked.user is None else await files.person(asked.user)
    await files.make_directory(asked.path, mode=asked.mode, person=person)
    return entry_wire(asked.path, await files.stat(asked.path))


async def move_path(call: Call) -> wire.EntryWire:
    return entry_wire(call.body.to, await _files(call).rename(call.body.path, call.body.to))


async def change_mode(call: Call) -> wire.EntryWire:
    files, asked = _files(call), call.body
    if asked.mode is not None:
        await files.chmod(asked.path, asked.mode)
    if asked.user is not None:
        person = await files.person(asked.user)
        await files.chown(asked.path, person.uid, person.gid)
    return entry_wire(asked.path, await files.stat(asked.path))


async def watch_directory(call: Call) -> web.StreamResponse:
    files, path = _files(call), call.path()
    depth, every = call.number("depth") or 1, call.number("every_s")
    changes = watching(files, path, depth=depth, every_s=every or 0.25)
    await files.entries(path)
    async with Lines(call) as lines, aclosing(changes):
        await lines.beat()
        async for change in changes:
            if change is None:
                await lines.beat()
            else:
                await lines.say(wire.ChangeWire(change.path, change.what.value, change.to))
    return lines.response


def _files(call: Call) -> Files:
    return call.desk.cloud.files(call.sandbox())


async def _person(files: Files, call: Call) -> Person | None:
    user = call.text("user")
    return None if user is None else await files.person(user)


ONE = "/sandboxes/{id}"
OPERATIONS = (
    Operation("GET", f"{ONE}/files", "A file.", read_file, None, bytes, query=(PATH, OFFSET, MOST)),
    Operation(
        "PUT", f"{ONE}/files", "Make or replace a file, whole or not at all.",
        write_file, bytes, wire.EntryWire, query=(PATH, MODE, USER),
    ),
    Operation(
        "DELETE", f"{ONE}/files", "Remove a file, or a directory and all in it.",
        remove_path, status=204, query=(PATH, TREE),
    ),
    Operation("GET", f"{ONE}/stat", "What is there.", stat_path, None, wire.EntryWire, query=(PATH, LINK)),
    Operation(
        "GET", f"{ONE}/entries", "What is in a directory.",
        list_directory, None, wire.EntriesWire, query=(PATH, DEPTH),
    ),
    Operation("POST", f"{ONE}/directories", "Make one.", make_directory, wire.DirectoryWire, wire.EntryWire, 201),
    Operation("POST", f"{ONE}/move", "Move.", move_path, wire.MoveWire, wire.EntryWire),
    Operation("POST", f"{ONE}/mode", "Change permissions or owner.", change_mode, wire.ModeWire, wire.EntryWire),
    Operation(
        "GET", f"{ONE}/watch", "What happens below a directory, line by line, until you leave.",
        watch_directory, None, wire.ChangeWire, query=(PATH, DEPTH, EVERY), lines=True,
    ),
)  # fmt: skip
