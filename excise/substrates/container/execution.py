"""One command through the engine's own exec: create, start with a multiplexed stream, inspect for the exit code.

The stream alone does not tell the end: the engine keeps it open for 2 s more when a background child holds
it, and for good when the command left input unread. So the exec is looked at while it runs, ever more rarely.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiodocker
from aiodocker.execs import Exec
from aiodocker.stream import Stream

from excise.errors import Phase
from excise.substrates.capture import Capture
from excise.substrates.container.engine import CALL_DEADLINE_S, Engine
from excise.types import Handle

FIRST_LOOK_S = 0.15
RAREST_LOOK_S = 2.0
QUIET_S = 0.05
"""So long nothing may arrive from a command that has ended before its stream is given up."""

CHUNK_BYTES = 64 * 1024
STDERR = 2


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute; `stdin` None leaves the input open for `Running.send`."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    user: str | None = None
    stdin: bytes | None = b""


@dataclass(frozen=True, slots=True)
class Ended:
    """`started` is False when the runtime could not start the command, and printed why."""

    exit_code: int
    started: bool


class Running:
    """A command that was sent to the engine. Always `release` it."""

    def __init__(self, engine: Engine, exec_: Exec, stream: Stream) -> None:
        self._engine = engine
        self._exec = exec_
        self._stream = stream
        self._writer: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, engine: Engine, box: Handle, command: Command) -> Running:
        async with engine.asking(Phase.RUN) as client:
            exec_ = await client.containers.container(box).exec(
                list(command.argv),
                stdin=command.stdin != b"",
                user=command.user or "",
                environment=command.env,
                workdir=command.cwd,
            )
            stream = exec_.start(detach=False)
            running = cls(engine, exec_, stream)
            try:
                await stream.__aenter__()
            except BaseException:
                running.release()
                raise
        if command.stdin:
            running._writer = asyncio.ensure_future(running._feed(command.stdin))
        return running

    def read_into(self, out: Capture | Any, err: Capture | Any) -> None:
        """Begin to read; `out` and `err` take bytes with `add`."""
        self._reader = asyncio.ensure_future(self._read(out, err))

    async def send(self, data: bytes) -> None:
        for at in range(0, len(data), CHUNK_BYTES):
            await self._stream.write_in(data[at : at + CHUNK_BYTES])

    def end_of_input(self) -> None:
        transport = _transport(self._stream)
        if transport is not None and transport.can_write_eof():
            transport.write_eof()

    async def ended(self, count: Any) -> Ended:
        """Wait for the end of the command, however long it takes; `count()` grows while output arrives."""
        reader = self._reader
        assert reader is not None
        pause_s = FIRST_LOOK_S
        while not reader.done():
            await asyncio.wait({reader}, timeout=pause_s)
            if not reader.done():
                ended = _end_in(await self.look())
                if ended is not None:
                    await self._until_quiet(reader, count)
                    return ended
                pause_s = min(2 * pause_s, RAREST_LOOK_S)
        async with self._engine.asking(Phase.RUN):
            reader.result()
        return await self._code()

    async def code(self, count: Any) -> int:
        return (await self.ended(count)).exit_code

    async def look(self) -> dict[str, Any]:
        async with self._engine.asking(Phase.RUN):
            return await self._exec.inspect()

    def release(self) -> None:
        """Let go of the connection at once. What runs in the container is not touched by it."""
        for task in (self._writer, self._reader):
            if task is not None:
                task.cancel()
        response = self._stream._resp  # noqa: SLF001  # close() would wait until unread input is read
        self._stream._closed = True  # noqa: SLF001
        transport = _transport(self._stream)
        if transport is not None:
            transport.abort()
        if response is not None:
            response.close()

    async def _code(self) -> Ended:
        """The stream may end a little before the engine knows the exit code."""
        pause_s = 0.001
        waited_s = 0.0
        while (ended := _end_in(await self.look())) is None:
            if waited_s > CALL_DEADLINE_S:
                raise self._engine.broken("the exec's stream ended but not the exec", Phase.RUN)
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            pause_s = min(2 * pause_s, 0.1)
        return ended

    async def _read(self, out: Capture, err: Capture) -> None:
        while (message := await self._stream.read_out()) is not None:
            (err if message.stream == STDERR else out).add(message.data)

    async def _until_quiet(self, reader: asyncio.Task[None], count: Any) -> None:
        before = -1
        while not reader.done() and count() != before:
            before = count()
            await asyncio.wait({reader}, timeout=QUIET_S)

    async def _feed(self, data: bytes) -> None:
        with contextlib.suppress(
            OSError, RuntimeError, aiodocker.DockerError
        ):  # it need not read it
            await self.send(data)
            self.end_of_input()


def _end_in(look: dict[str, Any]) -> Ended | None:
    """An exec that neither runs nor has an exit code has not been started yet."""
    if look.get("Running") or look.get("ExitCode") is None:
        return None
    return Ended(int(look["ExitCode"]), started=bool(look.get("Pid")))


def _transport(stream: Stream) -> asyncio.Transport | None:
    response = stream._resp  # noqa: SLF001  # aiodocker has no half-close and no abort
    connection = None if response is None else response.connection
    transport = None if connection is None else connection.transport
    return transport if isinstance(transport, asyncio.Transport) else None
