"""The driver's end of the control socket: requests out, answers back in any order, to any thread or event loop.

There is no thread behind it. Among threads that wait, one reads for all; an event loop reads when the socket
has something. Whoever reads hands each answer to the one whose tag it bears.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from excise.jail import control
from excise.jail.control import Answer, Failed, Gone, Op

_FD_ROOM = socket.CMSG_SPACE(4 * 16)
_ANSWER_ROOM = 8 << 10
"""The longest answer names a path."""
_AT_ONCE = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
_TAKING = int(socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)


class LineClosed(Exception):
    """The spawner is gone; nothing more will come."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and the descriptor that came with it, which is the receiver's to close."""

    answer: Answer
    fd: int | None = None


@dataclass(slots=True)
class _Waiting:
    box: int | None
    reply: Reply | None = None
    wake: Callable[[], None] | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Ordered:
    """A request whose answer is collected later."""

    tag: int
    waiting: _Waiting


@dataclass(slots=True)
class Line:
    """One control socket, shared by all threads and loops of one process."""

    socket: socket.socket
    on_gone: Callable[[Gone], None]
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _waiting: dict[int, _Waiting] = field(default_factory=dict)
    _tag: int = 0
    _reading: bool = False
    _ended: bool = False
    _loops: dict[asyncio.AbstractEventLoop, int] = field(default_factory=dict)
    _poll: select.poll | None = None

    def tell(self, op: Op, body: bytes) -> None:
        """Send what has no answer."""
        self._send(op, body, None)

    def ask(self, op: Op, body: bytes, *, box: int | None = None, timeout_s: float) -> Reply:
        """Send, and wait for the answer. `box` is what is being made: its death is an answer too."""
        waiting = _Waiting(box)
        tag = self._send(op, body, waiting)
        try:
            self._wait(lambda: waiting.reply is not None, timeout_s)
            assert waiting.reply is not None
        except BaseException:
            self._abandon(tag, waiting)
            raise
        return waiting.reply

    def order(self, op: Op, body: bytes, *, box: int | None) -> Ordered:
        """Send, and go on: somebody will collect the answer, or cancel."""
        waiting = _Waiting(box)
        return Ordered(self._send(op, body, waiting), waiting)

    def collect(self, ordered: Ordered, timeout_s: float) -> Reply:
        """The answer, which may have been here for long."""
        try:
            self._wait(lambda: ordered.waiting.reply is not None, timeout_s)
        except BaseException:
            self.cancel(ordered)
            raise
        assert ordered.waiting.reply is not None
        return ordered.waiting.reply

    async def collect_async(self, ordered: Ordered, timeout_s: float) -> Reply:
        """The same without blocking the running event loop."""
        self.look()
        if ordered.waiting.reply is None:
            await self._until_woken(ordered, timeout_s)
        if ordered.waiting.reply is None:
            raise LineClosed
        return ordered.waiting.reply

    def cancel(self, ordered: Ordered) -> None:
        """Nobody will collect it."""
        self._abandon(ordered.tag, ordered.waiting)

    def look(self) -> None:
        """Take what has come, without waiting."""
        with self._turn:
            if self._ended or self._reading:
                return
        self._take()

    def wait(self, until: Callable[[], bool], timeout_s: float) -> None:
        """Read what comes until it is so."""
        self._wait(until, timeout_s)

    async def ask_async(
        self, op: Op, body: bytes, *, box: int | None = None, timeout_s: float
    ) -> Reply:
        """The same without blocking the running event loop."""
        return await self.collect_async(self.order(op, body, box=box), timeout_s)

    def close(self) -> None:
        """Close our end: the spawner kills every jail and ends."""
        with self._turn:
            self._ended = True
            self._wake_all()
        self.socket.close()

    async def _until_woken(self, ordered: Ordered, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            with contextlib.suppress(
                RuntimeError
            ):  # a loop that was closed meanwhile waits no more
                loop.call_soon_threadsafe(_resolve, done)

        with self._turn:
            ordered.waiting.wake = wake
            if ordered.waiting.reply is not None or self._ended:
                return
            self._listen(loop)
        try:
            async with asyncio.timeout(timeout_s):
                await done
        except BaseException:
            self.cancel(ordered)
            raise
        finally:
            self._unlisten(loop)

    def _send(self, op: Op, body: bytes, waiting: _Waiting | None) -> int:
        with self._turn:
            if self._ended:
                raise LineClosed
            self._tag = self._tag % 0xFFFFFFFF + 1
            tag = self._tag
            if waiting is not None:
                self._waiting[tag] = waiting
        try:
            self._put(control.head(op, tag) + body)
        except OSError as error:
            with self._turn:
                self._waiting.pop(tag, None)
            raise LineClosed from error
        return tag

    def _put(self, message: bytes) -> None:
        """Send, and while the spawner is not taking any more, take what it says meanwhile."""
        while True:
            try:
                self.socket.send(message, _AT_ONCE)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self.socket, select.POLLOUT | select.POLLIN)
                poll.poll()
                self._take()
            else:
                return

    def _wait(self, until: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        with self._turn:
            while not until():
                if self._ended:
                    raise LineClosed
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if self._reading:
                    self._turn.wait(left)
                else:
                    self._read_for_all(left)

    def _read_for_all(self, left_s: float) -> None:
        """Called with the turn, which is given away while nothing comes."""
        self._reading = True
        self._turn.release()
        try:
            if self._poll is None:
                self._poll = select.poll()
                self._poll.register(self.socket, select.POLLIN)
            if self._poll.poll(left_s * 1000):
                self._take_one()
        finally:
            self._turn.acquire()
            self._reading = False
            self._turn.notify_all()

    def _take(self) -> None:
        """Read and hand out what is there, without waiting."""
        while self._take_one():
            pass

    def _take_one(self) -> bool:
        """True if there may be more."""
        try:
            message, extra, _, _ = self.socket.recvmsg(_ANSWER_ROOM, _FD_ROOM, _TAKING)
        except BlockingIOError:
            return False
        except OSError:
            message, extra = b"", []
        with self._turn:
            if message:
                self._hand_out(Reply(control.answer(message), _descriptor(extra)))
                return True
            self._ended = True
            self._wake_all()
            return False

    def _hand_out(self, reply: Reply) -> None:
        answer = reply.answer
        if isinstance(answer, Gone):
            self.on_gone(answer)
            for tag, waiting in tuple(self._waiting.items()):
                if waiting.box == answer.box:
                    self._give(tag, reply)
        elif isinstance(answer, Failed) and answer.tag == 0:
            for tag in tuple(self._waiting):
                self._give(tag, reply)
        else:
            self._give(answer.tag, reply)
        self._turn.notify_all()

    def _give(self, tag: int, reply: Reply) -> None:
        waiting = self._waiting.pop(tag, None)
        if waiting is None or waiting.abandoned:
            _close(reply)
            return
        waiting.reply = reply
        if waiting.wake is not None:
            waiting.wake()

    def _abandon(self, tag: int, waiting: _Waiting) -> None:
        with self._turn:
            self._waiting.pop(tag, None)
            waiting.abandoned = True
            if waiting.reply is not None:
                _close(waiting.reply)

    def _wake_all(self) -> None:
        for waiting in self._waiting.values():
            if waiting.wake is not None:
                waiting.wake()
        self._turn.notify_all()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._loops.get(loop, 0)
        if count == 0:
            loop.add_reader(self.socket, self._take)
        self._loops[loop] = count + 1

    def _unlisten(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops[loop] -= 1
        if self._loops[loop] == 0:
            del self._loops[loop]
            loop.remove_reader(self.socket)


def in_child(line: Line) -> None:
    """After a fork: drop the copy of the socket, or the spawner would outlive its driver by us."""
    with contextlib.suppress(OSError):
        os.close(line.socket.detach())
    line._ended = True  # noqa: SLF001


def _resolve(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _descriptor(extra: list[tuple[int, int, bytes]]) -> int | None:
    found = array.array("i")
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    for surplus in found[1:]:
        os.close(surplus)
    return found[0] if found else None


def _close(reply: Reply) -> None:
    if reply.fd is not None:
        os.close(reply.fd)
