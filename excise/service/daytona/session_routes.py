"""Sessions over HTTP: their commands, their logs at once or as they come, and what their commands read."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import WSCloseCode, web

from excise.errors import ExciseError, InputError
from excise.service.daytona import place
from excise.service.daytona.asked import Input, NewSession, SessionExecute
from excise.service.daytona.call import Inside, answer, nothing
from excise.service.daytona.commands import Command
from excise.service.daytona.errors import Told
from excise.service.daytona.holding import hold_s
from excise.service.daytona.marks import MARKS, marked, stream_of
from excise.service.daytona.plain_sessions import PlainSession
from excise.service.daytona.process import as_user
from excise.service.daytona.sessions import Session
from excise.service.daytona.versions import MARKED_OUTPUT
from excise.service.processes import Process
from excise.service.tape import Tape
from excise.substrates.base import Streams
from excise.substrates.shell import ARGV
from excise.types import Action

MOST_SESSIONS = 10_000
SHELLS_AT_REST = 24
"""More shells than this are not kept waiting in one sandbox: the ones used longest ago are ended, their state kept."""

ENTRYPOINT = "entrypoint"


async def create(call: Inside) -> web.StreamResponse:
    id_ = (await call.body(NewSession)).session_id
    sessions = call.room.sessions
    if not id_ or "/" in id_ or len(id_) > 200:
        raise InputError("a session's id is 1 to 200 characters without a slash")
    if id_ in sessions:
        raise Told(409, "CONFLICT", "session already exists")
    if len(sessions) >= MOST_SESSIONS:
        raise Told(429, "TOO_MANY", f"{MOST_SESSIONS} sessions are open: delete some")
    call.cloud.renew(call.box)
    if isinstance(call.cloud.substrate, Streams):
        session = Session(id_, lambda: _shell(call), lambda *words: _typed(call, *words))
        sessions[id_] = session
        call.room.go_on(session.begin())
    else:
        sessions[id_] = PlainSession(id_, call.cloud, call.box)
    return nothing(201)


async def _shell(call: Inside) -> Process:
    """What a session runs in."""
    action = Action(
        ARGV, cwd=await place.cwd(call, None), env=place.variables(call, None), timeout_s=None
    )
    return await call.cloud.start(call.box, as_user(call, action), tag="session", awaited=True)


async def listed(call: Inside) -> web.StreamResponse:
    return answer([_told(session) for session in call.room.sessions.values()])


async def get(call: Inside) -> web.StreamResponse:
    return answer(_told(_session(call)))


async def delete(call: Inside) -> web.StreamResponse:
    session = _session(call)
    del call.room.sessions[session.id]
    await session.close()
    return nothing()


async def execute(call: Inside) -> web.StreamResponse:
    """Run a command in the session's shell: answered at once, or with all that came of it."""
    session = _session(call)
    asked = await call.body(SessionExecute)
    if not asked.command.strip():
        raise InputError("command cannot be empty")
    call.cloud.renew(call.box)
    sessions = call.room.sessions
    sessions[session.id] = sessions.pop(session.id)
    command = await session.run(asked.command, place.unsetting(call))
    _let_rest(call, session)
    if asked.run_async or asked.var_async:
        return answer({"cmdId": command.id}, 202)
    await command.over.wait()
    _must_be_known(command)
    return answer({"cmdId": command.id, "exitCode": command.exit_code, **_output(call, command)})


def _let_rest(call: Inside, used: Session | PlainSession) -> None:
    idle = [each for each in call.room.sessions.values() if each.idle and each is not used]
    for session in idle[: max(0, len(idle) - SHELLS_AT_REST)]:
        call.room.go_on(_rest(session))


async def _rest(session: Session | PlainSession) -> None:
    with contextlib.suppress(ExciseError, Told):
        await session.rest()


async def command(call: Inside) -> web.StreamResponse:
    """How a command stands. While it runs the answer is held for a while, in case that it ends."""
    found = _command(call)
    if found.exit_code is None:
        found.asked += 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(hold_s(found.asked - 1)):
                await found.over.wait()
    _must_be_known(found)
    return answer(_told_command(found))


async def logs(call: Inside) -> web.StreamResponse:
    """What a command wrote; over a WebSocket as it comes."""
    found = _command(call)
    if _wants_socket(call):
        return await _followed(call, found.tape)
    return _as_asked(call, found.tape.kept())


async def give(call: Inside) -> web.StreamResponse:
    """Something for a command to read."""
    session, found = _session(call), _command(call)
    data = (await call.body(Input)).data
    if found.exit_code is not None:
        raise Told(410, "COMMAND_ALREADY_COMPLETED", f"command {found.id} has ended")
    await session.write(data.encode())
    return nothing()


async def _typed(call: Inside, script: str, data: bytes) -> None:
    action = Action.shell(script, stdin=data, timeout_s=30.0)
    found = await call.cloud.run(call.box, as_user(call, action))
    if not found.ok:
        raise Told(410, "SESSION_ENDED", "nobody reads this session's input any more")


async def entrypoint(call: Inside) -> web.StreamResponse:
    """What the template starts in every sandbox, as a session of one command."""
    commands = []
    if (process := _started(call)) is not None:
        code = {} if process.exit is None else {"exitCode": process.exit.exit_code}
        commands = [{"id": ENTRYPOINT, "command": process.action.argv[-1], **code}]
    return answer({"sessionId": ENTRYPOINT, "commands": commands})


async def entrypoint_logs(call: Inside) -> web.StreamResponse:
    process, pieces = _started(call), []
    if process is not None and _wants_socket(call):
        return await _followed(call, process)
    if process is not None and (written := process.written):
        async for piece in process.follow():
            pieces.append((piece.stream, piece.data))
            if piece.at + len(piece.data) >= written:
                break
    return _as_asked(call, [piece for piece in pieces if piece[0]])


def _started(call: Inside) -> Process | None:
    try:
        return call.box.processes.find(tag="start")
    except FileNotFoundError:
        return None


def _wants_socket(call: Inside) -> bool:
    return call.request.headers.get("Upgrade", "").lower() == "websocket"


async def _followed(call: Inside, source: Tape | Process) -> web.StreamResponse:
    """The log as it comes. A client that leaves takes nothing with it."""
    socket = web.WebSocketResponse(heartbeat=30.0, compress=False)
    with call.desk.streaming(call.owner):
        await socket.prepare(call.request)
        await _relay(socket, source)
    return socket


async def _relay(socket: web.WebSocketResponse, source: Tape | Process) -> None:
    hearing = asyncio.create_task(_hear(socket))
    sending = asyncio.create_task(_send(socket, source))
    try:
        await asyncio.wait({hearing, sending}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and not sending.cancelled() and (error := sending.exception()):
            await socket.close(code=WSCloseCode.INTERNAL_ERROR, message=str(error).encode()[:120])
    finally:
        for task in (hearing, sending):
            task.cancel()
        await asyncio.gather(hearing, sending, return_exceptions=True)
    await socket.close()


async def _hear(socket: web.WebSocketResponse) -> None:
    """Read until the client closes; nothing that it says matters."""
    async for _ in socket:
        pass


async def _send(socket: web.WebSocketResponse, source: Tape | Process) -> None:
    async for piece in source.follow():
        if piece.data:
            await socket.send_bytes(MARKS[piece.stream] + piece.data)


def _as_asked(call: Inside, pieces: list[tuple[int, bytes]]) -> web.Response:
    """As JSON, or with marks in plain text for an SDK that takes nothing else."""
    if "json" not in call.request.headers.get("Accept", "json"):
        return web.Response(body=marked(pieces), content_type="text/plain", charset="utf-8")
    return answer(_texts(pieces))


def _texts(pieces: list[tuple[int, bytes]]) -> dict[str, object]:
    both = b"".join(data for _, data in pieces)
    return {
        "output": both.decode("utf-8", "replace"),
        "stdout": stream_of(pieces, 1).decode("utf-8", "replace"),
        "stderr": stream_of(pieces, 2).decode("utf-8", "replace"),
    }


def _output(call: Inside, found: Command) -> dict[str, object]:
    pieces = found.tape.kept()
    texts = _texts(pieces)
    if call.version < MARKED_OUTPUT:
        texts["output"] = marked(pieces).decode("utf-8", "replace")
    return texts


def _session(call: Inside) -> Session | PlainSession:
    id_ = call.words[0]
    found = call.room.sessions.get(id_)
    if found is None:
        raise Told(404, "PROCESS_NOT_FOUND", f"session not found: {id_[:100]}")
    return found


def _command(call: Inside) -> Command:
    found = _session(call).commands.get(call.words[1])
    if found is None:
        raise Told(404, "PROCESS_NOT_FOUND", f"command not found: {call.words[1][:100]}")
    return found


def _must_be_known(command: Command) -> None:
    """How it ended, if it did; what broke it is raised."""
    if command.error is not None:
        raise command.error


def _told(session: Session | PlainSession) -> dict[str, object]:
    return {
        "sessionId": session.id,
        "commands": [_told_command(each) for each in session.commands.values()],
    }


def _told_command(command: Command) -> dict[str, object]:
    found: dict[str, object] = {"id": command.id, "command": command.text}
    if command.exit_code is not None:
        found["exitCode"] = command.exit_code
    return found
