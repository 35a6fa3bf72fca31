"""What one call of a client says and hears, step by step, without the I/O between the steps.

A procedure is a generator: it yields what to send and the exchanges to wait for, is resumed when all of them are
done, and returns what its caller gets. The blocking and the asyncio connection both drive these and add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from excise.agent import answers, messages, wire
from excise.agent.answers import ActionState, Hello, Process, Result
from excise.agent.errors import AgentProtocolError, AgentRefused
from excise.agent.messages import Exec
from excise.agent.mux import Exchange, Mux, Stream
from excise.errors import InputError

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long the agent may take for what needs no command."""

GRACE_S = 10.0
"""How long it may take to tell of a command whose own time limit is over."""


class Step(NamedTuple):
    """Send this, then wait for these, unless they are only named because it is about them."""

    data: bytes
    exchanges: tuple[Exchange[Any], ...] = ()
    wait: bool = True


Procedure: TypeAlias = Generator[Step, None, T]


def patience_with(timeout_s: float | None) -> float | None:
    """A command ends at its own time limit; longer than that and a grace, and the agent hangs."""
    return None if timeout_s is None else timeout_s + GRACE_S


def ask(
    mux: Mux,
    request: Callable[[int], bytes],
    op: int,
    decode: Callable[[bytes], T],
    patience_s: float | None = PATIENCE_S,
) -> Procedure[T]:
    """One request, one answer."""
    id_ = mux.new_id()
    data = request(id_)
    exchange = mux.open(id_, op, decode, patience_s)
    yield Step(data, (exchange,))
    return exchange.value()


def hello(mux: Mux) -> Procedure[Hello]:
    """Agree on the version, or say which the other end speaks."""
    try:
        found = yield from ask(mux, messages.hello, wire.OP_HELLO, answers.hello)
    except AgentRefused as refused:
        raise AgentProtocolError(f"the agent does not greet us: {refused}") from None
    if found.version != wire.PROTOCOL_VERSION:
        ours = wire.PROTOCOL_VERSION
        text = f"the agent speaks version {found.version} of the protocol, we speak {ours}"
        raise AgentProtocolError(f"{text}: place the agent of this package again")
    return found


def ping(mux: Mux) -> Procedure[int]:
    return (yield from ask(mux, messages.ping, wire.OP_PONG, answers.pong))


def run(mux: Mux, what: Exec) -> Procedure[Result]:
    """A command from its start to its end."""
    if what.pty:
        raise InputError("a command on a terminal has no captured output: start it instead")
    id_ = mux.new_id()
    patience_s = patience_with(what.timeout_s)
    exchange = Exchange(id_, wire.OP_RESULT, answers.result, patience_s, kills=id_)
    yield from _begin(mux, exchange, what, 0)
    return exchange.value()


def start(mux: Mux, what: Exec, *, stdin_open: bool) -> Procedure[Stream]:
    """A command whose output comes as it is written. Returns as soon as it is asked for."""
    id_ = mux.new_id()
    stream = Stream(id_, patience_with(what.timeout_s), kills=id_)
    if not stdin_open:
        yield from _begin(mux, stream, what, wire.EXEC_STREAM, wait=False)
        return stream
    request = messages.exec_(id_, what, wire.EXEC_STREAM | wire.EXEC_STDIN_OPEN)
    mux.claim(stream)
    yield Step(request, (stream,), wait=False)
    for piece in messages.stdin_pieces(id_, what.stdin):
        yield Step(piece, (stream,), wait=False)
    return stream


def background(mux: Mux, what: Exec) -> Procedure[int]:
    """A command that outlives our interest. Returns its id once it has been started."""
    id_ = mux.new_id()
    exchange = Exchange(id_, wire.OP_DONE, answers.done, PATIENCE_S, kills=id_)
    yield from _begin(mux, exchange, what, wire.EXEC_BACKGROUND)
    exchange.value()
    return id_


def signal(mux: Mux, action: int, number: int, *, whole_tree: bool) -> Procedure[None]:
    request = messages.signal(action, number, whole_tree=whole_tree)
    exchange = mux.aside(action, PATIENCE_S)
    yield Step(request, (exchange,))
    exchange.value()


def actions(mux: Mux) -> Procedure[list[ActionState]]:
    """Every action that is alive or ended unread; their ids are not given out again."""
    found = yield from ask(mux, messages.list_actions, wire.OP_ACTIONS, answers.actions)
    mux.reserve(action.id for action in found)
    return found


def attach(mux: Mux, action: int) -> Procedure[Stream]:
    stream = mux.claim(Stream(action, None, kills=0))
    yield Step(messages.attach(action))
    return stream


def detach(mux: Mux, stream: Stream) -> Procedure[bool]:
    """Listen no more; the action goes on and its output is kept, head and tail. False if it has ended before."""
    exchange = mux.aside(stream.id, PATIENCE_S)
    yield Step(messages.detach(stream.id), (exchange,))
    if stream.done:
        return False
    exchange.value()
    mux.abandon(stream)
    return True


def processes(mux: Mux) -> Procedure[list[Process]]:
    return (
        yield from ask(mux, messages.processes, wire.OP_PROCESS_LIST, answers.process_list)
    )  # fmt: skip


def environment(mux: Mux) -> Procedure[dict[str, str]]:
    return (yield from ask(mux, messages.environment, wire.OP_DATA, answers.environment))


def thaw(mux: Mux, now_ns: int, seed: bytes) -> Procedure[None]:
    """Set the guest's clock and begin its kernel's random numbers anew, from these bytes."""

    def request(id_: int) -> bytes:
        return messages.thaw(id_, now_ns, seed)

    yield from ask(mux, request, wire.OP_DONE, answers.done)


def quiet(mux: Mux, timeout_s: float) -> Procedure[None]:
    """Kill everything in the sandbox but the agent."""

    def request(id_: int) -> bytes:
        return messages.quiet(id_, timeout_s)

    yield from ask(mux, request, wire.OP_DONE, answers.done, patience_with(timeout_s))


def open_shell(mux: Mux, what: Exec) -> Procedure[int]:
    """A shell that stays; its id."""
    id_ = mux.new_id()
    request = messages.shell_open(id_, what)
    exchange = mux.open(id_, wire.OP_DONE, answers.done, PATIENCE_S)
    yield Step(request, (exchange,))
    exchange.value()
    return id_


def run_in_shell(
    mux: Mux, shell: int, script: str, timeout_s: float | None, output_limit: int
) -> Procedure[Result]:
    id_ = mux.new_id()
    request = messages.shell_run(id_, shell, script, timeout_s, output_limit)
    patience_s = patience_with(timeout_s)
    exchange = mux.open(id_, wire.OP_RESULT, answers.result, patience_s, kills=shell)
    yield Step(request, (exchange,))
    return exchange.value()


def close_shell(mux: Mux, shell: int) -> Procedure[None]:
    def request(id_: int) -> bytes:
        return messages.shell_close(id_, shell)

    yield from ask(mux, request, wire.OP_DONE, answers.done)


def _begin(
    mux: Mux, exchange: Exchange[Any], what: Exec, flags: int, *, wait: bool = True
) -> Procedure[None]:
    """Ask for a command whose stdin is known: it goes along with the request, or is kept by the agent before it."""
    about = (exchange,)
    if len(what.stdin) <= messages.INLINE_STDIN_BYTES:  # nearly every action
        request = messages.exec_(exchange.id, what, flags, what.stdin)
        mux.claim(exchange)
        yield Step(request, about, wait)
        return
    request = messages.exec_(exchange.id, what, flags | wire.EXEC_STDIN_KEPT)
    mux.claim(exchange)
    for piece in messages.stdin_pieces(exchange.id, what.stdin):
        yield Step(piece, about, wait=False)
    yield Step(request, about, wait)
    if (
        exchange.refused
    ):  # perhaps only a piece of the stdin was, and the command has started without it
        yield Step(messages.signal(exchange.id, 9, whole_tree=True))
        yield Step(messages.stdin_end(exchange.id))
