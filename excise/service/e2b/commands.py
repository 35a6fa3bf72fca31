"""`process.Process`: commands and terminals of a sandbox, and what goes into and comes out of them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable, Mapping

from aiohttp import web

from excise.errors import ExciseError, InputError
from excise.service.doors import Desk
from excise.service.e2b import events
from excise.service.e2b.entries import placed
from excise.service.e2b.inside import inside
from excise.service.e2b.logins import Logins
from excise.service.e2b.reach import reached, user_of
from excise.service.e2b.rpc import Calls, Headers, Message
from excise.service.e2b.stream import Outlet, patience_of
from excise.service.e2b.wire import STREAM, Envelopes, envelope, last
from excise.service.people import Person
from excise.service.processes import Process
from excise.service.sandbox import Sandbox
from excise.types import Action, Fault

SERVICE = "/process.Process"
DEAD_S = 2.0


class Commands:
    """The calls. What runs belongs to its sandbox: that a connection ends means nothing to it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._logins = Logins(desk.cloud)
        self.calls = Calls(desk, SERVICE)
        self.calls.streamed("Start", self._start, events.KEEPALIVE)
        self.calls.streamed("Connect", _connect, events.KEEPALIVE)
        self.calls.unary("List", _list)
        self.calls.unary("SendInput", _send_input)
        self.calls.unary("SendSignal", _send_signal)
        self.calls.unary("CloseStdin", _close_stdin)
        self.calls.unary("Update", _update)

    def routes(self) -> Iterable[web.RouteDef]:
        yield from self.calls.routes()
        yield web.post(f"{SERVICE}/StreamInput", self._stream_input)

    async def _start(
        self, sandbox: Sandbox, headers: Headers, asked: Message, outlet: Outlet
    ) -> Mapping[str, str] | None:
        wish, name = events.wish_of(asked), user_of(headers)
        person = await inside(sandbox).person(self._desk, sandbox, name)
        action = Action(
            wish.argv,
            cwd=placed(wish.cwd, person, sandbox.workdir),
            env={**_identity(person, sandbox), **wish.env},
            user=None if name in {None, sandbox.user} else name,
            timeout_s=patience_of(headers),
        )
        if wish.terminal is None:
            action = await self._logins.spared(sandbox, person, action)
        process = await self._desk.cloud.start(
            sandbox,
            action,
            tag=wish.tag,
            terminal=wish.terminal,
            awaited=True,
            input_open=wish.input_open,
        )
        inside(sandbox).wished(sandbox, process, wish)
        return await _relay(process, 0, outlet)

    async def _stream_input(self, request: web.Request) -> web.Response:
        sandbox = await reached(self._desk, request.headers)
        envelopes = Envelopes()
        process: Process | None = None
        async for part in request.content.iter_any():
            for each in envelopes.feed(part):
                if isinstance(each.get("start"), dict):
                    process = _running(sandbox, each["start"])
                elif isinstance(each.get("data"), dict):
                    if process is None:
                        raise InputError("a stream of input begins with the process it is for")
                    await process.write(events.input_of(each["data"]))
        envelopes.finish()
        return web.Response(body=envelope({}) + last(), content_type=STREAM)


async def _connect(
    sandbox: Sandbox, headers: Headers, asked: Message, outlet: Outlet
) -> Mapping[str, str] | None:
    """From now on; of one that has ended, all that is kept."""
    process = _found(sandbox, asked)
    since = process.written if process.running else 0
    try:
        async with asyncio.timeout(patience_of(headers)):
            return await _relay(process, since, outlet)
    except TimeoutError:
        return _DEADLINE


async def _relay(process: Process, since: int, outlet: Outlet) -> Mapping[str, str] | None:
    """What it writes, and how it ended; or the error that the stream ends with instead."""
    terminal = process.terminal is not None
    outlet.put(events.started(process))
    await (
        outlet.flush()
    )  # somebody may wait for this alone, and it may have come later than what is held back
    async for piece in process.follow(since):
        if piece.data:
            outlet.put(events.data(piece, terminal=terminal))
            await outlet.flush()
    found = process.exit
    assert found is not None
    if found.timed_out:
        return _DEADLINE
    if found.fault is Fault.MISSING_CWD:
        text = f"cwd '{process.action.cwd}' does not exist"
        return {"code": "invalid_argument", "message": text}
    outlet.put(events.ended(found))
    return None


async def _list(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
    del headers, asked
    wishes = inside(sandbox).wishes
    running = [each for each in sandbox.processes.all() if each.running]
    return {"processes": [events.listed(each, wishes.get(each.number)) for each in running]}


async def _send_input(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
    del headers
    await _running(sandbox, asked).write(events.input_of(asked))
    return {}


async def _send_signal(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
    del headers
    number = events.signal_of(asked)
    process = _running(sandbox, asked)
    try:
        await process.signal(number)
    except ProcessLookupError:
        raise _ended(process) from None
    if number == signal.SIGKILL:  # whoever asks what runs, after that, is not told of it
        with contextlib.suppress(TimeoutError, ExciseError):
            async with asyncio.timeout(DEAD_S):
                await process.wait()
    return {}


async def _close_stdin(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
    del headers
    await _running(sandbox, asked).end_of_input()
    return {}


async def _update(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
    del headers
    size = events.terminal_of(asked)
    process = _running(sandbox, asked)
    if size is not None:
        await process.resize(size.rows, size.columns)
    return {}


_DEADLINE = {"code": "deadline_exceeded", "message": "the time that was given is over"}


def _identity(person: Person, sandbox: Sandbox) -> dict[str, str]:
    """Who one is, for programs that ask the environment; the sandbox's own variables come first."""
    who = {"HOME": person.home, "USER": person.name, "LOGNAME": person.name}
    return {name: value for name, value in who.items() if name not in sandbox.spec.env}


def _found(sandbox: Sandbox, asked: Message) -> Process:
    number, tag = events.selected(asked)
    return sandbox.processes.find(number, tag=tag)


def _running(sandbox: Sandbox, asked: Message) -> Process:
    process = _found(sandbox, asked)
    if not process.running:
        raise _ended(process)
    return process


def _ended(process: Process) -> FileNotFoundError:
    return FileNotFoundError(2, "no such process: it has ended", str(process.number))
