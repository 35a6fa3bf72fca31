"""Interpreters: Python processes that stay, and run code over a WebSocket with the variables of the code before."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from aiohttp import WSMsgType, web

from excise.errors import ExciseError, InputError
from excise.service.daytona import place
from excise.service.daytona.asked import Context as Asked
from excise.service.daytona.asked import RunCode, read
from excise.service.daytona.call import BODY_BYTES, Inside, answer
from excise.service.daytona.describe import stamp
from excise.service.daytona.errors import Told
from excise.service.daytona.process import as_user, checked, seconds
from excise.service.processes import Process
from excise.types import Action

REPL = Path(__file__).with_name("repl.py")
DEFAULT = "default"
MOST_CONTEXTS = 64
TIMED_OUT = 4008
"""The close code that the SDK reads as a time-out."""

FAILED = 1011
LONGEST_S = 600.0
"""Code without a limit of its own gets this one."""

LINE_BYTES = 8 * 1024 * 1024


@dataclass(eq=False, slots=True)
class Context:
    """One interpreter; its process starts with the first code."""

    id: str
    cwd: str
    created: str
    process: Process | None = None
    lines: AsyncGenerator[bytes, None] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def told(self) -> dict[str, object]:
        return {
            "id": self.id,
            "cwd": self.cwd,
            "language": "python",
            "createdAt": self.created,
            "active": True,
        }

    async def close(self) -> None:
        process, self.process, lines, self.lines = self.process, None, self.lines, None
        if process is not None:
            await process.end()
        if lines is not None:
            await lines.aclose()


async def create(call: Inside) -> web.StreamResponse:
    asked = await call.body(Asked)
    if asked.language not in {None, "", "python"}:
        raise InputError(f"an interpreter of {asked.language!r}: only python")
    return answer((await _made(call, secrets.token_hex(16), asked.cwd)).told())


async def listed(call: Inside) -> web.StreamResponse:
    contexts = [each.told() for each in call.room.contexts.values() if each.id != DEFAULT]
    return answer({"contexts": contexts})


async def delete(call: Inside) -> web.StreamResponse:
    context = call.room.contexts.pop(call.words[0], None)
    if context is None or context.id == DEFAULT:
        raise Told(404, "PROCESS_NOT_FOUND", "interpreter context not found")
    await context.close()
    return answer({"message": "context deleted"})


async def execute(call: Inside) -> web.StreamResponse:
    """The first message is the code; what comes of it follows, and the end is the end of the connection."""
    socket = web.WebSocketResponse(heartbeat=30.0, compress=False, max_msg_size=BODY_BYTES)
    await socket.prepare(call.request)
    message = await socket.receive()
    if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
        return socket
    data = message.data if isinstance(message.data, bytes) else message.data.encode()
    try:
        await _run(call, socket, read(data, RunCode))
    except TimeoutError:
        await socket.close(code=TIMED_OUT, message=b"execution timed out")
    except (ExciseError, Told, OSError) as error:
        await socket.close(code=FAILED, message=str(error).encode()[:120])
    await socket.close()
    return socket


async def _run(call: Inside, socket: web.WebSocketResponse, asked: RunCode) -> None:
    context = call.room.contexts.get(asked.context_id or DEFAULT)
    if context is None and asked.context_id:
        raise Told(404, "PROCESS_NOT_FOUND", f"no interpreter context {asked.context_id[:100]}")
    if context is None:
        context = await _made(call, DEFAULT, None)
    envs, limit_s = checked(asked.envs), LONGEST_S
    if asked.timeout is not None:
        limit_s = seconds(asked.timeout) or 10 * 365 * 24 * 3600.0
    async with context.turn:
        try:
            async with asyncio.timeout(limit_s):
                await _start(call, context)
                assert context.process is not None
                request = msgspec.json.encode({"code": asked.code, "envs": envs})
                await context.process.write(request + b"\n")
                await _tell(context, socket)
        except BaseException:
            await asyncio.shield(context.close())
            raise


async def _tell(context: Context, socket: web.WebSocketResponse) -> None:
    assert context.lines is not None
    async for line in context.lines:
        try:
            kind = msgspec.json.decode(line, type=dict[str, object]).get("type")
        except msgspec.MsgspecError:
            continue
        if kind == "end":
            return
        await socket.send_str(line.decode("utf-8", "replace"))
    ended = context.process.exit if context.process else None
    code = "" if ended is None else f" with {ended.exit_code}"
    raise Told(410, "SESSION_ENDED", f"the interpreter ended{code}; is python3 in this sandbox?")


async def _made(call: Inside, id_: str, cwd: str | None) -> Context:
    contexts = call.room.contexts
    if len(contexts) >= MOST_CONTEXTS:
        raise Told(429, "TOO_MANY", f"{MOST_CONTEXTS} interpreters are open: delete some")
    where = await place.path(call, cwd) if cwd else await place.workdir(call)
    created = stamp(call.cloud.wall_s(call.cloud.now_ns()))
    contexts[id_] = Context(id_, where, created)
    return contexts[id_]


async def _start(call: Inside, context: Context) -> None:
    if context.process is not None and context.process.running:
        return
    await context.close()
    argv = ("python3", "-u", "-c", REPL.read_text(encoding="utf-8"))
    env = place.variables(call, None)
    action = Action(argv, cwd=context.cwd, env=env, timeout_s=None)
    context.process = await call.cloud.start(
        call.box, as_user(call, action), tag="interpreter", awaited=True
    )
    context.lines = _lines(context.process)


async def _lines(process: Process) -> AsyncGenerator[bytes, None]:
    """Whole lines of what it says; what it says too long a line of is left out."""
    carry = b""
    async with contextlib.aclosing(process.follow()) as pieces:
        async for piece in pieces:
            if piece.stream != 1:
                continue
            *lines, carry = (carry + piece.data).split(b"\n")
            for line in lines:
                yield line
            if len(carry) > LINE_BYTES:
                carry = b""
