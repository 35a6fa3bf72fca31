"""A persistent bash over one exec that is kept open, whoever's: the connection for the framing in `substrates.shell`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from excise.errors import Phase, SandboxGone
from excise.substrates.shell import OPENING, Exchange, Frame
from excise.types import MIB, Observation

OUTPUT_LIMIT_BYTES = 64 * MIB
GRACE_S = 1.0
KILLED = 137


class Sink(Protocol):
    """Takes what comes on one stream."""

    def add(self, data: bytes) -> None: ...


class Kept(Protocol):
    """A platform's exec, started with its input open."""

    def read_into(self, out: Sink, err: Sink) -> None: ...
    async def send(self, data: bytes) -> None: ...
    def end_of_input(self) -> None: ...
    def release(self) -> None: ...
    async def code(self, count: Callable[[], int]) -> int:
        """How the bash ended, once it has; `count()` grows while output arrives."""
        ...


class ExecShell:
    """One bash that stays. When it has ended, every further script raises SandboxGone."""

    def __init__(self, substrate: str, running: Kept, kill: Callable[[], Awaitable[None]]) -> None:
        self._substrate = substrate
        self._running = running
        self._kill = kill
        self._frames: tuple[Frame, Frame] | None = None
        self._complete = asyncio.Event()
        self._arrived_bytes = 0
        running.read_into(_Sink(self, 0), _Sink(self, 1))
        self._end: asyncio.Task[int] | None = asyncio.ensure_future(self._ended())

    async def begin(self) -> None:
        await self._running.send(OPENING)

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        end = self._end
        if end is None or end.done():
            raise SandboxGone(
                "the shell has ended; open another", substrate=self._substrate, phase=Phase.RUN
            )
        exchange = Exchange.of(script)
        out, err = self._frames = (
            Frame(exchange.mark, OUTPUT_LIMIT_BYTES),
            Frame(exchange.mark, OUTPUT_LIMIT_BYTES),
        )
        self._complete.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._answered(exchange.request, end)
            timed_out = False
        except TimeoutError:
            timed_out = True
            await self._abandon()
        except BaseException:
            await self._abandon()
            raise
        finally:
            self._frames = None
        return _observation(out, err, end, timed_out)

    async def close(self) -> None:
        """End the shell as an end of its input would; kill it if it does not listen."""
        end, self._end = self._end, None
        if end is None:
            return
        self._running.end_of_input()
        await asyncio.wait({end}, timeout=GRACE_S)
        if not end.done():
            await self._kill()
        await _dropped(end)
        self._running.release()

    def forget(self) -> None:
        """Let go of the connection; the sandbox, and with it the shell, is somebody else's to end."""
        end, self._end = self._end, None
        if end is not None:
            end.cancel()
        self._running.release()

    async def _answered(self, request: bytes, end: asyncio.Task[int]) -> None:
        async def exchange() -> None:
            await self._running.send(request)
            await self._complete.wait()

        exchanging = asyncio.ensure_future(exchange())
        try:
            await asyncio.wait({exchanging, end}, return_when=asyncio.FIRST_COMPLETED)
            if exchanging.done() and not end.done():
                exchanging.result()
        finally:
            await _dropped(exchanging)

    async def _abandon(self) -> None:
        end, self._end = self._end, None
        self._running.release()
        if end is not None:
            await _dropped(end)
        await self._kill()

    async def _ended(self) -> int:
        return await self._running.code(lambda: self._arrived_bytes)

    def take(self, which: int, data: bytes) -> None:
        """Output that comes between two scripts, from something in the background, belongs to none."""
        self._arrived_bytes += len(data)
        if self._frames is not None:
            if not self._frames[which].done:
                self._frames[which].feed(data)
            if all(frame.done for frame in self._frames):
                self._complete.set()


class _Sink:
    def __init__(self, shell: ExecShell, which: int) -> None:
        self._shell = shell
        self._which = which

    def add(self, data: bytes) -> None:
        self._shell.take(self._which, data)


async def _dropped(task: asyncio.Task[int] | asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _observation(out: Frame, err: Frame, end: asyncio.Task[int], timed_out: bool) -> Observation:
    for frame in (out, err):
        if not frame.done:
            frame.end()
    if out.value is not None:
        code = int(out.value)
    else:
        code = KILLED if timed_out or not end.done() or end.cancelled() else end.result()
    return Observation(
        exit_code=code,
        stdout=out.output.kept,
        stderr=err.output.kept,
        timed_out=timed_out,
        truncated=out.output.truncated or err.output.truncated,
        stdout_bytes=out.output.total_bytes,
        stderr_bytes=err.output.total_bytes,
    )
