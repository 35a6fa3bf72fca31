"""Commands that go on whether or not anybody listens, and what they wrote, for whoever comes back.

A process belongs to its sandbox and not to a connection. Its output is kept in a ring of bounded size; any
number of followers read it from where they left off. While somebody follows, the command waits for the slowest of
them, as it would for a pipe; while nobody does, it goes on and the oldest output is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from excise.errors import ExciseError, InputError, Phase, SubstrateError
from excise.service.errors import NAME, Refused
from excise.service.once import stream_of
from excise.service.tape import Piece, Tape
from excise.substrates.base import Stream, Substrate, Terminal
from excise.types import MIB, Action, Handle, Observation

RING_BYTES = MIB
"""Output kept of one process."""

ENDED_KEPT = 64
"""Ended processes of one sandbox that can still be asked how they ended."""

MOST_ALIVE = 256
"""Processes of one sandbox that are under way at once."""


class Process:
    """One command under way, or how it ended."""

    def __init__(
        self,
        number: int,
        action: Action,
        stream: Stream,
        started_ns: int,
        *,
        tag: str | None = None,
        terminal: Terminal | None = None,
        awaited: bool = False,
        over: Callable[[Process], None],
    ) -> None:
        self.number = number
        self.action = action
        self.tag = tag
        self.terminal = terminal
        self.awaited = awaited
        """Somebody waited for it from the start: it is an action, and not something in the background."""
        self.started_ns = started_ns
        self.exit: Observation | None = None
        """How it ended, without its output."""
        self.error: BaseException | None = None
        """Why nobody knows how it ended: the substrate failed, or the sandbox is gone."""
        self._stream = stream
        self._tape = Tape(RING_BYTES, awaited=awaited)
        self._over = over
        self._task = asyncio.create_task(self._pump())

    def __repr__(self) -> str:
        return f"<Process {self.number} {'running' if self.running else 'ended'}>"

    @property
    def running(self) -> bool:
        return self.exit is None and self.error is None

    @property
    def written(self) -> int:
        """Bytes written so far, on both streams."""
        return self._tape.written

    @property
    def kept_bytes(self) -> int:
        return self._tape.kept_bytes

    def follow(self, since: int = 0) -> AsyncGenerator[Piece, None]:
        """What it wrote from `since` on, as far as it is kept, and what it writes; ends when it has ended.

        Raises what broke it, if the substrate did. Then `exit` is None.
        """
        return self._tape.follow(since)

    async def wait(self) -> Observation:
        """How it ended; raises what broke it."""
        await asyncio.shield(asyncio.gather(self._task, return_exceptions=True))
        if self.error is not None:
            raise self.error
        assert self.exit is not None
        return self.exit

    async def write(self, data: bytes) -> None:
        """To its input, or typed at its terminal."""
        self._must_run()
        await self._stream.write(data)

    async def end_of_input(self) -> None:
        self._must_run()
        await self._stream.end_of_input()

    async def signal(self, number: int) -> None:
        """To everything it started."""
        self._must_run()
        await self._stream.signal(number)

    async def resize(self, rows: int, columns: int) -> None:
        self._must_run()
        await self._stream.resize(rows, columns)
        self.terminal = Terminal(rows, columns)

    async def end(self) -> None:
        """Kill it if it still runs, and wait until that is known. Idempotent."""
        if self.running:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _must_run(self) -> None:
        if not self.running:
            raise InputError(f"process {self.number} has ended")

    async def _pump(self) -> None:
        try:
            async for number, data in self._stream:
                self._tape.add(number, data)
                await self._tape.room()
            self.exit = await self._stream.wait()
        except asyncio.CancelledError:
            self.error = _ended_with_its_sandbox(self.number)
            raise
        except Exception as error:  # noqa: BLE001  # told to everybody who follows or waits
            self.error = error
        finally:
            await self._close()

    async def _close(self) -> None:
        self._tape.close(self.error)
        self._over(self)
        try:
            await self._stream.close()
        except ExciseError as error:
            self.error = self.error or (None if self.exit else error)


class Processes:
    """The processes of one sandbox, by number and by tag."""

    def __init__(
        self,
        substrate: Substrate,
        handle: Callable[[], Handle],
        now_ns: Callable[[], int],
        busy: Callable[[Process | None], None],
    ) -> None:
        self._substrate = substrate
        self._handle = handle
        self._now_ns = now_ns
        self._busy = busy
        self._all: dict[int, Process] = {}
        self._ended: deque[Process] = deque()
        self._ended_bytes = 0
        self._last = 0

    def __len__(self) -> int:
        """Those under way."""
        return len(self._all) - len(self._ended)

    async def start(
        self,
        action: Action,
        *,
        tag: str | None = None,
        terminal: Terminal | None = None,
        awaited: bool = False,
        input_open: bool = True,
    ) -> Process:
        """Start one. It ends with its command, its time limit or its sandbox, and with nothing else.

        `awaited`: somebody is about to follow it from the start, so that none of its output may be forgotten.
        Without `input_open` it has no input but its action's own, and may start faster.
        """
        if len(self) >= MOST_ALIVE:
            raise Refused(
                f"{MOST_ALIVE} processes are under way in this sandbox; end some first",
                phase=Phase.RUN,
                retry_after_s=1.0,
                theirs=True,
            )
        stream = await stream_of(self._substrate, self._handle(), action, terminal, input_open)
        self._last += 1
        self._busy(None)
        process = Process(
            self._last,
            action,
            stream,
            self._now_ns(),
            tag=tag,
            terminal=terminal,
            awaited=awaited,
            over=self._over,
        )
        self._all[process.number] = process
        return process

    def all(self) -> list[Process]:
        """Those under way, and those that ended lately."""
        return list(self._all.values())

    def find(self, number: int | None = None, *, tag: str | None = None) -> Process:
        """By number, or the last one started with that tag."""
        if number is not None and number in self._all:
            return self._all[number]
        if tag is not None:
            for process in reversed(self._all.values()):
                if process.tag == tag:
                    return process
        raise FileNotFoundError(2, "no such process", str(number if tag is None else tag))

    async def end_all(self) -> None:
        """Kill all that run."""
        for process in self.all():
            await process.end()

    def _over(self, process: Process) -> None:
        self._busy(process)
        self._ended.append(process)
        self._ended_bytes += process.kept_bytes
        while len(self._ended) > ENDED_KEPT or self._ended_bytes > 8 * RING_BYTES:
            oldest = self._ended.popleft()
            self._ended_bytes -= oldest.kept_bytes
            del self._all[oldest.number]


def _ended_with_its_sandbox(number: int) -> SubstrateError:
    text = f"process {number} was ended with its sandbox"
    return SubstrateError(text, substrate=NAME, phase=Phase.RUN)
