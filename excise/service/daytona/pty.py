"""Terminals: a login shell on each, typed at and read over a WebSocket."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from dataclasses import dataclass, field

import msgspec
from aiohttp import WSMsgType, web

from excise.errors import ExciseError, InputError
from excise.service.daytona import place
from excise.service.daytona.asked import NewPty, Size
from excise.service.daytona.call import Inside, answer, whole
from excise.service.daytona.describe import stamp
from excise.service.daytona.errors import Told
from excise.service.daytona.process import as_user, checked
from excise.service.processes import Process
from excise.substrates.base import Terminal
from excise.types import MIB, Action

MOST_CELLS = 1000
MOST_PTYS = 64
TYPED_BYTES = MIB
"""The most that one message may type."""

EXIT_CONTROL = "X-Daytona-Pty-Exit-Control"
ENVS = "X-Daytona-Pty-Envs~"
"""Subprotocols of the WebSocket: tell the exit as a message; variables, packed."""


@dataclass(eq=False, slots=True)
class Pty:
    """One terminal. It starts at once, or when somebody first connects."""

    id: str
    size: Terminal
    cwd: str
    envs: dict[str, str]
    created: str
    lazy: bool = False
    process: Process | None = None
    heard: bool = False
    """Somebody has been connected: whoever comes next sees what is written from then on."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def told(self) -> dict[str, object]:
        return {
            "id": self.id,
            "cwd": self.cwd,
            "envs": self.envs,
            "cols": self.size.columns,
            "rows": self.size.rows,
            "createdAt": self.created,
            "active": self.process is not None and self.process.running,
            "lazyStart": self.lazy,
        }


async def create(call: Inside) -> web.StreamResponse:
    pty = await _made(call, await call.body(NewPty))
    if not pty.lazy:
        await _start(call, pty)
    return answer({"sessionId": pty.id}, 201)


async def create_and_connect(call: Inside) -> web.StreamResponse:
    """Both in one: what is wanted is in the query, variables in a subprotocol, where no log keeps them."""
    query = call.request.query
    asked = NewPty(
        id=query.get("id", ""),
        cwd=query.get("cwd"),
        envs=unpacked(_protocols(call)),
        cols=whole(query.get("cols", "80"), "cols", 1, MOST_CELLS),
        rows=whole(query.get("rows", "24"), "rows", 1, MOST_CELLS),
    )
    pty = await _made(call, asked)
    try:
        await _start(call, pty)
    except BaseException:
        call.room.ptys.pop(pty.id, None)
        raise
    return await _attached(call, pty)


async def connect(call: Inside) -> web.StreamResponse:
    pty = call.room.ptys.get(call.words[0])
    if pty is None or (pty.process is not None and not pty.process.running):
        return await _said(call, f"PTY session {call.words[0][:100]} not found or ended")
    await _start(call, pty)
    return await _attached(call, pty)


async def listed(call: Inside) -> web.StreamResponse:
    return answer({"sessions": [each.told() for each in call.room.ptys.values()]})


async def get(call: Inside) -> web.StreamResponse:
    return answer(_pty(call).told())


async def delete(call: Inside) -> web.StreamResponse:
    pty = _pty(call)
    call.room.ptys.pop(pty.id, None)
    if pty.process is not None:
        await pty.process.end()
    return answer({"message": "PTY session deleted"})


async def resize(call: Inside) -> web.StreamResponse:
    pty, size = _pty(call), await call.body(Size)
    pty.size = _size(size.rows, size.cols)
    if pty.process is not None:
        if not pty.process.running:
            raise Told(410, "SESSION_ENDED", f"PTY session {pty.id} has ended")
        await pty.process.resize(pty.size.rows, pty.size.columns)
    return answer(pty.told())


async def _made(call: Inside, asked: NewPty) -> Pty:
    ptys = call.room.ptys
    if not asked.id or "/" in asked.id or len(asked.id) > 200:
        raise InputError("a PTY session's id is 1 to 200 characters without a slash")
    for id_ in [key for key, each in ptys.items() if each.process and not each.process.running]:
        del ptys[id_]
    if asked.id in ptys:
        raise Told(409, "CONFLICT", f"PTY session with ID '{asked.id}' already exists")
    if len(ptys) >= MOST_PTYS:
        raise Told(429, "TOO_MANY", f"{MOST_PTYS} terminals are open: close some")
    cwd = await place.path(call, asked.cwd) if asked.cwd else await place.workdir(call)
    envs = {"TERM": "xterm-256color"} | checked(asked.envs)
    size = _size(asked.rows or 24, asked.cols or 80)
    created = stamp(call.cloud.wall_s(call.cloud.now_ns()))
    pty = Pty(asked.id, size, cwd, envs, created, lazy=bool(asked.lazy_start))
    ptys[pty.id] = pty
    return pty


async def _start(call: Inside, pty: Pty) -> None:
    async with pty.turn:
        if pty.process is not None:
            return
        env = place.variables(call, pty.envs)
        action = Action(("bash", "-i", "-l"), cwd=pty.cwd, env=env, timeout_s=None)
        pty.process = await call.cloud.start(
            call.box, as_user(call, action), tag=f"pty {pty.id}", terminal=pty.size
        )


async def _attached(call: Inside, pty: Pty) -> web.StreamResponse:
    """Until the shell ends or the client leaves; the shell stays for whoever connects again."""
    assert pty.process is not None
    protocols = [EXIT_CONTROL] if EXIT_CONTROL in _protocols(call) else []
    socket = _socket(protocols)
    with call.desk.streaming(call.owner):
        await socket.prepare(call.request)
        await socket.send_json({"type": "control", "status": "connected"})
        since = pty.process.written if pty.heard else 0
        pty.heard = True
        await _relay(socket, pty.process, since, control=bool(protocols))
    return socket


async def _relay(
    socket: web.WebSocketResponse, process: Process, since: int, *, control: bool
) -> None:
    showing = asyncio.create_task(_show(socket, process, since))
    typing = asyncio.create_task(_type(socket, process))
    try:
        await asyncio.wait({showing, typing}, return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            await _tell_exit(socket, process, control=control)
    finally:
        for task in (showing, typing):
            task.cancel()
        await asyncio.gather(showing, typing, return_exceptions=True)
    await socket.close()


async def _show(socket: web.WebSocketResponse, process: Process, since: int) -> None:
    with contextlib.suppress(ExciseError, ConnectionResetError):
        async for piece in process.follow(since):
            if piece.data:
                await socket.send_bytes(piece.data)


async def _type(socket: web.WebSocketResponse, process: Process) -> None:
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            await process.write(message.data)
        elif message.type is WSMsgType.TEXT:
            await process.write(message.data.encode())


async def _tell_exit(socket: web.WebSocketResponse, process: Process, *, control: bool) -> None:
    if process.exit is None:
        why = str(process.error or "the terminal was lost")
        await socket.close(code=1011, message=json.dumps({"error": why[:90]}).encode())
        return
    code = process.exit.exit_code
    if control:
        await socket.send_json({"type": "control", "status": "exited", "exitCode": code})
    await socket.close(code=1000, message=json.dumps({"exitCode": code}).encode())


async def _said(call: Inside, why: str) -> web.StreamResponse:
    """The protocol tells this on an open connection."""
    socket = _socket([])
    await socket.prepare(call.request)
    await socket.send_json({"type": "control", "status": "error", "error": why})
    await socket.close()
    return socket


def _socket(protocols: list[str]) -> web.WebSocketResponse:
    return web.WebSocketResponse(
        protocols=protocols, heartbeat=30.0, compress=False, max_msg_size=TYPED_BYTES
    )


def _protocols(call: Inside) -> list[str]:
    return [
        item.strip() for item in call.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
    ]


def unpacked(protocols: list[str]) -> dict[str, str]:
    """The variables among the subprotocols."""
    for item in protocols:
        if item.startswith(ENVS):
            packed = item.removeprefix(ENVS)
            try:
                data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
                return msgspec.json.decode(data, type=dict[str, str])
            except (ValueError, msgspec.MsgspecError) as error:
                raise InputError("the variables of the terminal cannot be read") from error
    return {}


def _pty(call: Inside) -> Pty:
    found = call.room.ptys.get(call.words[0])
    if found is None:
        raise Told(404, "PROCESS_NOT_FOUND", "PTY session not found")
    return found


def _size(rows: int, columns: int) -> Terminal:
    if not (0 < rows <= MOST_CELLS and 0 < columns <= MOST_CELLS):
        raise InputError(f"a terminal has 1 to {MOST_CELLS} rows and columns")
    return Terminal(rows, columns)
