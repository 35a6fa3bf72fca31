"""Sessions: shells that stay, in which commands follow each other and see what those before them did to the shell.

A command of a session is written to the shell at once; the shell runs one after the other. What it writes is told
apart by marks that nothing else writes (`substrates.shell`). The shells' input stays open: a command that reads waits
for what its owner sends. A shell that nobody has used for long, where many are open, is ended and its state kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from excise.errors import ExciseError
from excise.service.daytona.commands import ENDED, Command, Commands
from excise.service.processes import Process
from excise.substrates.shell import Exchange, Split

INPUT = "197"
_OPENING = f"exec 198>&1 199>&2\nexec {INPUT}<> <(:)\nprintf '\\036%d\\036' $$ >&198\n"
_KEEP = """\
( for name in $(compgen -A variable); do case $name in
  BASH*|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|LINENO|name|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS|SRANDOM|UID|_) ;;
  *) declare -p "$name" ;; esac; done
  declare -f; alias -p; trap -p; umask -p; shopt -p; printf 'cd -- %q\\n' "$PWD"; set +o )"""
"""What tells another shell to be like this one. A shell's own variables are not to be assigned."""

_IDLE = '[ -z "$(jobs -p)" ]'

Start = Callable[[], Awaitable[Process]]
"""Starts the shell."""

Typed = Callable[[str, bytes], Awaitable[None]]
"""Runs a script beside the shell, with those bytes as its input."""


class _Running:
    """A command in the shell: what of each stream is its output."""

    def __init__(self, command: Command, mark: bytes) -> None:
        self.command = command
        self.streams = {1: Split(mark), 2: Split(mark)}


class Session(Commands):
    """One shell, made when it is first needed."""

    def __init__(self, id_: str, start: Start, typed: Typed) -> None:
        super().__init__(id_)
        self.process: Process | None = None
        self.pid: int | None = None
        """Of the shell, as it is known inside the sandbox."""
        self._start = start
        self._typed = typed
        self._turn = asyncio.Lock()
        self._waiting: dict[int, deque[_Running]] = {1: deque(), 2: deque()}
        self._hello: bytes | None = None
        self._ready = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._state: bytes | None = None
        self._last: Command | None = None
        """Whose jobs in the background may still write."""

    @property
    def idle(self) -> bool:
        """It has a shell, in which nothing runs."""
        return self.process is not None and not any(self._waiting.values())

    async def begin(self) -> None:
        """Start the shell, so that the first command finds it there. What fails is told to that command."""
        with contextlib.suppress(ExciseError):
            async with self._turn:
                if not self.closed:
                    await self._open()

    async def run(self, text: str, before: str = "") -> Command:
        """Hand a command to the shell, after what comes `before` it; it is under way when this returns."""
        self.must_be_open()
        command = Command(text)
        async with self._turn:
            await self._open()
            self.must_be_open()
            self.keep(command)
            await self._send(command, before)
        return command

    async def write(self, data: bytes) -> None:
        """Give its commands something to read."""
        self.must_be_open()
        await self._ready.wait()
        self.must_be_open()
        await self._typed(f"cat > /proc/{self.pid}/fd/{INPUT}", data)

    async def rest(self) -> bool:
        """End the shell and keep its state; False where something still runs in it, or its state is too large."""
        async with self._turn:
            if not self.idle or self.process is None:
                return False
            kept = Command(f"{_IDLE} && {_KEEP}")
            await self._send(kept)
            await kept.over.wait()
            state = kept.tape
            if kept.exit_code != 0 or state.written > state.kept_bytes or not self.idle:
                return False
            self._state = b"".join(data for stream, data in state.kept() if stream == 1)
            await self._end_shell()
            return True

    async def close(self) -> None:
        """End the shell and all that runs in it. Idempotent."""
        self.closed = True
        async with self._turn:
            await self._end_shell()

    async def _open(self) -> None:
        if self.process is not None:
            return
        self._hello, self.pid = b"", None
        self._ready.clear()
        self.process = await self._start()
        self._pump = asyncio.create_task(self._read(self.process))
        await self.process.write(_OPENING.encode())
        if self._state is not None:
            script = self._state.decode("utf-8", "surrogateescape")
            await self._send(Command(f"{{ {script}\n}} >/dev/null 2>&1"))
            self._state = None

    async def _send(self, command: Command, before: str = "") -> None:
        assert self.process is not None
        exchange = Exchange.of(before + command.text, f"<&{INPUT}")
        running = _Running(command, exchange.mark)
        for waiting in self._waiting.values():
            waiting.append(running)
        try:
            await self.process.write(exchange.request)
        except ExciseError as error:
            self._over(ENDED, error)
            raise

    async def _read(self, process: Process) -> None:
        """Hand out what the shell writes, to the command whose output it is."""
        try:
            async for piece in process.follow():
                data = piece.data
                if self._hello is not None and piece.stream == 1:
                    data = self._greeted(data)
                while data and (waiting := self._waiting.get(piece.stream)):
                    running = waiting[0]
                    data = self._heard(running, piece.stream, data)
                    await running.command.tape.room()
                if data and self._last is not None and piece.stream:
                    self._last.tape.add(piece.stream, data)
            self.closed = True
            self._over(process.exit.exit_code if process.exit else ENDED)
        except ExciseError as error:
            self.broken = error
            self._over(ENDED, error)

    def _greeted(self, data: bytes) -> bytes:
        """The shell's first words tell its number; what follows is returned."""
        assert self._hello is not None
        self._hello += data
        _, start, rest = self._hello.partition(b"\x1e")
        number, end, rest = rest.partition(b"\x1e")
        if not (start and end):
            return b""
        self.pid, self._hello = int(number), None
        self._ready.set()
        return rest

    def _heard(self, running: _Running, stream: int, data: bytes) -> bytes:
        split = running.streams[stream]
        output, rest = split.feed(data)
        running.command.tape.add(stream, output)
        if split.done:
            self._waiting[stream].popleft()
            out, err = running.streams[1], running.streams[2]
            if out.done and err.done:
                running.command.end(int(out.value or b"0"))
                self._last = running.command
        return rest

    def _over(self, code: int, error: ExciseError | None = None) -> None:
        """The shell is no more: the first command that waits took it with it, the others never began."""
        for running in dict.fromkeys((*self._waiting[1], *self._waiting[2])):
            for stream, split in running.streams.items():
                running.command.tape.add(stream, split.end())
            running.command.end(code, error)
            code = ENDED
        for waiting in self._waiting.values():
            waiting.clear()
        self._ready.set()

    async def _end_shell(self) -> None:
        process, self.process = self.process, None
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump
        if process is not None:
            await process.end()
        self._over(ENDED)
