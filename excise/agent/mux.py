"""Which frame answers what: the one place that knows what is under way on a connection. No I/O, no clock.

An id has at most one exchange that waits for its answer, and behind it asides: requests about a running
action (signal, detach) that are answered by OP_DONE or OP_ERROR under the action's own id, in order.
Frames for an id that nobody waits for any more belong to what was abandoned; they are counted and dropped.

Several threads may claim and abandon at once; `feed` is for one at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from excise.agent import answers, messages
from excise.agent.answers import Result
from excise.agent.errors import AgentError, AgentProtocolError, AgentRefused
from excise.agent.frames import Frame, Frames
from excise.agent.wire import (
    CREDIT_BYTES,
    OP_DONE,
    OP_ERROR,
    OP_OUTPUT,
    OP_RESULT,
    OP_TAKEN,
    STDERR,
    STDOUT,
)
from excise.errors import LifecycleError

T = TypeVar("T")
X = TypeVar("X", bound="Exchange[Any]")


class Output(NamedTuple):
    """What an action wrote, and on which stream: `wire.STDOUT` or `wire.STDERR`."""

    stream: int
    data: bytes


class Exchange(Generic[T]):
    """One request and the answer it waits for.

    `patience_s` is how long the agent may take, None for ever. If nobody waits for the answer any more, the
    action `kills` must die, and `aborts` is to be sent. `wake`, if set, is called when something has come.
    """

    __slots__ = (
        "_decode", "_error", "_value", "aborts", "deadline", "done", "id", "kills", "op", "patience_s", "wake",
    )  # fmt: skip

    def __init__(
        self,
        id_: int,
        op: int,
        decode: Callable[[bytes], T],
        patience_s: float | None,
        *,
        kills: int = 0,
    ) -> None:
        self.id = id_
        self.op = op
        self.done = False
        self.patience_s = patience_s
        self.kills = kills
        self.aborts = b""
        self.wake: Callable[[], object] | None = None
        self.deadline: float | None = None
        self._decode = decode
        self._value: T | None = None
        self._error: AgentError | None = None

    def ready(self) -> bool:
        """There is something to be had without waiting."""
        return self.done

    def value(self) -> T:
        """The answer, once done; raises what the agent or the connection said instead."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    @property
    def refused(self) -> bool:
        """The agent said no."""
        return isinstance(self._error, AgentRefused)

    def accept(self, frame: Frame) -> bool:
        """Take an answer; True when it is the last one."""
        if frame.op == self.op:
            self._value = self._decode(frame.body)
        elif frame.op == OP_ERROR:
            self._error = answers.error(frame.body)
        else:
            raise AgentProtocolError(f"op {frame.op} where {self.op} is the answer")
        return True

    def give_up(self) -> None:
        """Nobody waits for it any more, and nobody is to be woken."""
        self._error = AgentError("nobody waited for the answer")
        self.wake = None
        self.done = True

    def finish(self, error: AgentError | None = None) -> None:
        """It is over; `error` only if it has not been answered."""
        if self.done:
            return
        if error is not None:
            self._error = error
        self.done = True
        if self.wake is not None:
            self.wake()


class Stream(Exchange[Result]):
    """An action whose output comes as it is written, as fast as somebody takes it."""

    __slots__ = ("_chunks", "_untold")

    def __init__(self, id_: int, patience_s: float | None, *, kills: int) -> None:
        super().__init__(id_, OP_RESULT, answers.result, patience_s, kills=kills)
        self._chunks: deque[Output] = deque()
        self._untold = 0

    def ready(self) -> bool:
        return self.done or bool(self._chunks)

    def accept(self, frame: Frame) -> bool:
        if frame.op != OP_OUTPUT:
            return super().accept(frame)
        if frame.flags not in (STDOUT, STDERR):
            raise AgentProtocolError(f"output on stream {frame.flags}")
        self._chunks.append(Output(frame.flags, frame.body))
        if self.wake is not None:
            self.wake()
        return False

    def take(self) -> tuple[Output, bytes] | None:
        """What came first, and the credit to send for it, if it is time; None at the end."""
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self._untold += len(chunk.data)
        if self.done or self._untold < CREDIT_BYTES // 2:
            return chunk, b""
        told, self._untold = self._untold, 0
        return chunk, messages.credit(self.id, told)


class Mux:
    """All exchanges of one connection."""

    def __init__(self) -> None:
        self.strays = 0
        """Frames that nobody waited for."""
        self.on_taken: Callable[[int], None] | None = None
        """Told how many bytes the agent has read, where it says so: on serial lines."""
        self._frames = Frames()
        self._ids = count(1)
        self._open: dict[int, Exchange[Any]] = {}
        self._asides: dict[int, deque[Exchange[None]]] = {}
        self._elsewhere: frozenset[int] = frozenset()
        self._failure: tuple[type[AgentError], str] | None = None

    def new_id(self) -> int:
        """An id that nothing alive has."""
        while True:
            id_ = next(self._ids) & 0xFFFF_FFFF
            if id_ and id_ not in self._open and id_ not in self._elsewhere:
                return id_

    def open(
        self,
        id_: int,
        op: int,
        decode: Callable[[bytes], T],
        patience_s: float | None,
        *,
        kills: int = 0,
    ) -> Exchange[T]:
        """Wait from now on for `op` under an id; to be called when the request is ready to be sent."""
        return self.claim(Exchange(id_, op, decode, patience_s, kills=kills))

    def claim(self, exchange: X) -> X:
        """From now on frames with its id are given to `exchange`."""
        self.check()
        if self._open.setdefault(exchange.id, exchange) is not exchange:
            raise LifecycleError(f"action {exchange.id} is attached already")
        if self._failure is not None:  # since then, in another thread
            self._open.pop(exchange.id, None)
            self.check()
        return exchange

    def aside(self, action: int, patience_s: float | None) -> Exchange[None]:
        """A request about a running action, answered under its id."""
        self.check()
        exchange = Exchange(action, OP_DONE, answers.done, patience_s)
        self._asides.setdefault(action, deque()).append(exchange)
        return exchange

    def reserve(self, ids: Iterable[int]) -> None:
        """Ids that actions of somebody before us have."""
        self._elsewhere = frozenset(ids)

    def feed(self, data: bytes | memoryview) -> None:
        """Give what came to whoever waits for it. What is not the protocol fails everybody."""
        try:
            for frame in self._frames.feed(data):
                self._give(frame)
        except AgentProtocolError as error:
            self.fail(AgentProtocolError, str(error))

    def abandon(self, exchange: Exchange[Any]) -> bytes:
        """Nobody waits for it any more; what to send so that nothing goes on, or is kept, for nobody."""
        if exchange.done or self._failure is not None:
            return b""
        if self._open.get(exchange.id) is exchange:
            del self._open[exchange.id]
        exchange.give_up()
        if not exchange.kills:
            return exchange.aborts
        self.aside(exchange.kills, None)  # its answer, which nobody waits for either
        return messages.signal(exchange.kills, 9, whole_tree=True) + messages.stdin_end(exchange.id)

    def fail(self, kind: type[AgentError], text: str) -> None:
        """Nothing can be answered any more. The first reason is the one that is told."""
        if self._failure is None:
            self._failure = (kind, text)
        kind, text = self._failure
        waiting = list(self._open.values())
        for asides in list(self._asides.values()):
            waiting += asides
        self._open.clear()
        self._asides.clear()
        for exchange in waiting:
            exchange.finish(kind(text))

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def under_way(self) -> list[Exchange[Any]]:
        """Everything that waits for an answer."""
        return [*self._open.values(), *(x for asides in self._asides.values() for x in asides)]

    def check(self) -> None:
        """Raise why nothing can be answered any more, if that is so."""
        if self._failure is not None:
            kind, text = self._failure
            raise kind(text)

    def _give(self, frame: Frame) -> None:
        if frame.op == OP_TAKEN:
            if self.on_taken is not None:
                self.on_taken(answers.taken(frame.body))
            return
        exchange = self._open.get(frame.id)
        if frame.op in (OP_DONE, OP_ERROR) and self._is_aside(frame, exchange):
            self._give_aside(frame)
        elif exchange is None:
            self.strays += 1
        elif exchange.accept(frame):
            self._open.pop(frame.id, None)
            exchange.finish()

    def _is_aside(self, frame: Frame, exchange: Exchange[Any] | None) -> bool:
        """An action that is still to be answered by OP_DONE comes before what was asked about it."""
        return frame.id in self._asides and (exchange is None or exchange.op != OP_DONE)

    def _give_aside(self, frame: Frame) -> None:
        asides = self._asides[frame.id]
        exchange = asides[0]
        exchange.accept(frame)
        asides.popleft()
        if not asides:
            del self._asides[frame.id]
        exchange.finish()
