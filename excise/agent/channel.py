"""The I/O of the blocking client: one socket, driven by whichever threads wait on it.

Whoever waits first reads for all (the leader); the others wait until theirs has come or the reading is
free. A lone thread takes two locks that nobody else wants, sends once and receives once.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from typing import Any, TypeVar

from excise.agent.errors import AgentError, AgentGone, AgentTimeout, of_another_process
from excise.agent.mux import Exchange, Mux
from excise.agent.procedures import PATIENCE_S, Procedure

T = TypeVar("T")

TICK_S = 0.25
"""How often a thread that waits looks at the time."""

_BUFFER_BYTES = 64 * 1024
_FIRST_BUFFER_BYTES = 4 * 1024
"""Most answers are short, and to clear 64 KiB costs a new connection a third of its price."""

_UNTOUCHED = b"\xff" * 12
"""No frame begins like this: while it stands in the buffer, nothing has been received."""

_AT_ONCE = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


class Channel:
    """Drives procedures over `sock`, which it owns."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)
        tick = struct.pack("ll", 0, round(TICK_S * 1e6))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, tick)
        self.mux = Mux()
        self._sock = sock
        self._pid = os.getpid()
        self._buffer = bytearray(_FIRST_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._sending = threading.Lock()
        self._reading = threading.Lock()
        self._turn = threading.Condition()
        self._followers = 0

    def do(self, procedure: Procedure[T]) -> T:
        """Drive a procedure to its end. Whatever interrupts it abandons what it waits for."""
        about: tuple[Exchange[Any], ...] = ()
        try:
            self._check_process()
            while True:
                data, about, wait = next(procedure)
                self.post(data)
                if wait:
                    for exchange in about:
                        self.wait(exchange)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except BaseException:
            procedure.close()
            self.abandon(*about)
            raise

    def post(self, data: bytes) -> None:
        """Send whole frames, all of them or, if that fails, none any more ever."""
        self._check_process()
        whole = False
        with self._sending:
            try:
                try:
                    sent = self._sock.send(data, _AT_ONCE)
                except BlockingIOError:
                    sent = 0
                if sent < len(data):
                    self._post_rest(memoryview(data)[sent:])
                whole = True
            except OSError as error:
                self.mux.fail(AgentGone, f"the agent is gone: {error.strerror}")
                self.mux.check()
            finally:
                if not whole:
                    self.mux.fail(AgentGone, "a request could not be sent as a whole")

    def wait(self, exchange: Exchange[Any]) -> None:
        """Return when there is something of it; raise when the agent takes longer than it should."""
        if exchange.ready():
            return
        self._check_process()
        patience_s = exchange.patience_s
        until = None if patience_s is None else time.monotonic() + patience_s
        while not exchange.ready():
            if self._reading.acquire(blocking=False):
                try:
                    self._lead(exchange, until)
                finally:
                    self._reading.release()
                    self._hand_on()
            else:
                self._follow(exchange)
                _check_time(until)

    def abandon(self, *exchanges: Exchange[Any]) -> None:
        """Nobody waits for them any more: what would go on for nobody is killed."""
        if self._pid != os.getpid():
            return
        data = b"".join([self.mux.abandon(exchange) for exchange in exchanges])
        if data and not self.mux.failed:
            with contextlib.suppress(AgentError):
                self.post(data)

    def close(self) -> None:
        """Let go. In a child of fork only the copy is closed, and the parent's connection lives on."""
        if self._pid != os.getpid():
            self._sock.close()
            return
        self.mux.fail(AgentGone, "the connection was closed")
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._hand_on()
        quiet = self._reading.acquire(timeout=4 * TICK_S)
        self._sock.close()  # also if not quiet: then it is our own reading that a signal's handler closes
        if quiet:
            self._reading.release()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise of_another_process(self._pid)

    def _lead(self, exchange: Exchange[Any], until: float | None) -> None:
        while not exchange.ready():
            self._receive(0)
            if self._followers:
                self._hand_on()
            if not exchange.ready():
                _check_time(until)

    def _follow(self, exchange: Exchange[Any]) -> None:
        with self._turn:
            self._followers += 1
            try:
                if self._reading.locked() and not exchange.ready():
                    self._turn.wait(TICK_S)
            finally:
                self._followers -= 1

    def _hand_on(self) -> None:
        """Tell those who wait that something has come, or that the reading is free."""
        if self._followers:
            with self._turn:
                self._turn.notify_all()

    def _receive(self, flags: int) -> None:
        """Take what has come, for whomever. To be called by whoever holds the reading."""
        self._view[:12] = _UNTOUCHED
        told = False
        try:
            size = self._sock.recv_into(self._view, 0, flags)
            if size:
                self.mux.feed(self._view[:size])
            else:
                self.mux.fail(AgentGone, "the agent closed the connection")
            told = True
            if size == len(self._view) < _BUFFER_BYTES:
                self._buffer = bytearray(_BUFFER_BYTES)
                self._view = memoryview(self._buffer)
        except BlockingIOError:
            told = True
        except OSError as error:
            self.mux.fail(AgentGone, f"the agent is gone: {error.strerror}")
        finally:
            if not told and self._buffer[:12] != _UNTOUCHED:
                self.mux.fail(AgentGone, "an interrupt lost part of an answer")

    def _post_rest(self, data: memoryview) -> None:
        """The agent takes no more at the moment; until it does, take what it sends."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | select.POLLOUT)
        until = time.monotonic() + PATIENCE_S
        while data:
            events = sum(found for _, found in poll.poll(TICK_S * 1000))
            if events & ~select.POLLIN:
                with contextlib.suppress(BlockingIOError):
                    data = data[self._sock.send(data, _AT_ONCE) :]
                    until = time.monotonic() + PATIENCE_S
            if events & select.POLLIN and self._reading.acquire(blocking=False):
                try:
                    self._receive(socket.MSG_DONTWAIT)
                finally:
                    self._reading.release()
                    self._hand_on()
            self.mux.check()
            _check_time(until)


def _check_time(until: float | None) -> None:
    if until is not None and time.monotonic() > until:
        raise AgentTimeout("the agent did not answer in time, though it should: kill the sandbox")
