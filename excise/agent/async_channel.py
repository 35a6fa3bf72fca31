"""The I/O of the asyncio client: a protocol over any transport, no threads, nothing that needs a certain event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from excise.agent.errors import AgentGone, AgentTimeout, of_another_process
from excise.agent.mux import Exchange, Mux
from excise.agent.procedures import Procedure

T = TypeVar("T")

LAST_WORDS_S = 1.0
"""How long what was posted before the end may take to be sent."""


class AsyncChannel(asyncio.Protocol):
    """Drives procedures over the transport that it is connected to."""

    def __init__(self) -> None:
        self.mux = Mux()
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._transport: asyncio.WriteTransport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = asyncio.Event()
        self._watch: asyncio.TimerHandle | None = None
        self._waiting: dict[Exchange[Any], asyncio.Future[None]] = {}

    async def do(self, procedure: Procedure[T]) -> T:
        """Drive a procedure to its end. Cancelling it abandons what it waits for."""
        about: tuple[Exchange[Any], ...] = ()
        try:
            self._check_process()
            while True:
                data, about, wait = next(procedure)
                self.post(data)
                if not self._writable.is_set():
                    await self._writable.wait()
                if wait:
                    for exchange in about:
                        await self.wait(exchange)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except BaseException:
            procedure.close()
            self.abandon(*about)
            raise

    def post(self, data: bytes) -> None:
        """Send whole frames, as soon as the other end takes them."""
        self._check_process()
        self.mux.check()
        if self._transport is None:
            raise AgentGone("the connection is not made yet")
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until what was posted is on its way."""
        await self._writable.wait()
        self.mux.check()

    async def wait(self, exchange: Exchange[Any]) -> None:
        """Return when there is something of it; raise when the agent takes longer than it should."""
        while not exchange.ready():
            waiter = self._loop.create_future()
            self._waiting[exchange] = waiter
            exchange.wake = _waking(waiter)
            if exchange.patience_s is not None:
                self._watch_over(exchange, exchange.patience_s)
            try:
                await waiter
            finally:
                exchange.wake = None
                del self._waiting[exchange]

    def abandon(self, *exchanges: Exchange[Any]) -> None:
        """Nobody waits for them any more: what would go on for nobody is killed."""
        data = b"".join([self.mux.abandon(exchange) for exchange in exchanges])
        if data and self._transport is not None and self._pid == os.getpid():
            self._transport.write(data)

    async def close(self) -> None:
        """Let go; what was posted is still sent, if the agent takes it. In a child of fork nothing happens."""
        if self._pid != os.getpid() or self._transport is None:
            return
        self.mux.fail(AgentGone, "the connection was closed")
        self._transport.close()
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._lost.wait()
        except TimeoutError:
            self._transport.abort()
            await self._lost.wait()

    def abort(self) -> None:
        """Let go at once, without waiting for anything; what was posted may not arrive."""
        if self._pid == os.getpid() and self._transport is not None:
            self.mux.fail(AgentGone, "the connection was closed")
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Not every event loop's transports are subclasses of asyncio's, so its kind cannot be checked."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self.mux.feed(data)
        if self.mux.failed and self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f": {exc}" if exc else ""
        self.mux.fail(AgentGone, f"the agent closed the connection{reason}")
        if self._watch is not None:
            self._watch.cancel()
        self._writable.set()
        self._lost.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise of_another_process(self._pid)

    def _watch_over(self, exchange: Exchange[Any], patience_s: float) -> None:
        """One timer for all that is waited for, set to the earliest: most answers come long before."""
        deadline = exchange.deadline = self._loop.time() + patience_s
        if self._watch is not None and self._watch.when() <= deadline:
            return
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._watch = None
        now = self._loop.time()
        later = []
        for exchange, waiter in self._waiting.items():
            if exchange.patience_s is None or exchange.deadline is None or waiter.done():
                continue
            if exchange.deadline > now:
                later.append(exchange.deadline)
                continue
            waiter.set_exception(
                AgentTimeout("the agent did not answer in time, though it should: kill the sandbox")
            )
        if later:
            self._watch = self._loop.call_at(min(later), self._look)


def _waking(waiter: asyncio.Future[None]) -> Callable[[], None]:
    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    return wake
