"""What the agent answers, as values. Whatever is too short, too long or makes no sense raises, and nothing is guessed."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Never, TypeVar

from excise.agent import wire
from excise.agent.errors import AgentProtocolError, AgentRefused
from excise.agent.wire import RESULT_HEAD

T = TypeVar("T")

_RESULT_BYTES = RESULT_HEAD.size
_ENTRY = Struct("<IIIQqI")
_ACTION = Struct("<IIBQ")
_PROCESS = Struct("<III")
_HELLO = Struct("<III")


class Result(NamedTuple):
    """How an action ended. The stamps are the agent's CLOCK_MONOTONIC; totals count what was cut, too."""

    code: int
    end: int
    fault: int
    error: int
    received_ns: int
    spawned_ns: int
    exited_ns: int
    sent_ns: int
    user_ns: int
    system_ns: int
    max_rss_kib: int
    stdout_total: int
    stderr_total: int
    stdout: bytes
    stderr: bytes

    @property
    def timed_out(self) -> bool:
        return self.end == wire.END_TIMEOUT


class Hello(NamedTuple):
    """Who answers: its protocol version, process id, role, and what it can do beyond the version."""

    version: int
    pid: int
    role: int
    features: frozenset[str]


class Entry(NamedTuple):
    """A file, directory or link: what `stat` says of it, and where a link points."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    links: int
    name: str
    target: str


class ActionState(NamedTuple):
    """An action that is alive, or ended without anybody having read its result."""

    id: int
    pid: int
    ended: bool
    started_ns: int
    words: str


class Process(NamedTuple):
    """A process in the sandbox; `action` is 0 where none of ours started it."""

    pid: int
    parent: int
    action: int
    name: str


class Tree(NamedTuple):
    """A digest over a whole tree, and how many entries it covers."""

    entries: int
    sha256: bytes


class Piece(NamedTuple):
    """Part of a file, and how large the file is now."""

    size: int
    data: bytes


def result(body: bytes) -> Result:
    """OP_RESULT."""
    if len(body) < _RESULT_BYTES:
        _short("a result", body)
    head = RESULT_HEAD.unpack_from(body)
    out, err = head[13:]
    middle = _RESULT_BYTES + out
    if middle + err != len(body):
        raise AgentProtocolError(f"a result of {len(body)} bytes that announces {middle + err}")
    return Result._make((*head[:13], body[_RESULT_BYTES:middle], body[middle:]))


def hello(body: bytes) -> Hello:
    reader = _Reader(body)
    version, pid, role = reader.numbers(_HELLO)
    return reader.whole(Hello(version, pid, role, frozenset(reader.text().split())))


def pong(body: bytes) -> int:
    """The agent's clock."""
    if len(body) != 8:
        _short("a pong", body)
    return int.from_bytes(body, "little")


def done(body: bytes) -> None:
    if body:
        raise AgentProtocolError(f"{len(body)} bytes where nothing should be")


def error(body: bytes) -> AgentRefused:
    reader = _Reader(body)
    return reader.whole(AgentRefused(reader.u32(), reader.text()))


def piece(body: bytes) -> Piece:
    """OP_DATA of a file."""
    if len(body) < 8:
        _short("a piece of a file", body)
    return Piece(int.from_bytes(body[:8], "little"), body[8:])


def digest(body: bytes) -> Tree:
    """OP_DATA of a tree."""
    if len(body) != 40:
        _short("a digest", body)
    return Tree(int.from_bytes(body[:8], "little"), body[8:])


def taken(body: bytes) -> int:
    """How many bytes the agent has read."""
    reader = _Reader(body)
    return reader.whole(reader.u32())


def environment(body: bytes) -> dict[str, str]:
    """OP_DATA of variables; what is no NAME=VALUE is left out, as a shell leaves it out."""
    number, data = piece(body)
    *entries, rest = data.split(b"\0")
    if rest or len(entries) != number:
        _short(f"an environment of {number} variables", body)
    found = (entry.partition(b"=") for entry in entries)
    return {_plain(name): _plain(value) for name, equals, value in found if equals and name}


def entry(body: bytes) -> Entry:
    reader = _Reader(body)
    return reader.whole(_entry(reader))


def entries(body: bytes) -> list[Entry]:
    reader = _Reader(body)
    return reader.whole([_entry(reader) for _ in range(reader.count(_ENTRY.size + 8))])


def actions(body: bytes) -> list[ActionState]:
    reader = _Reader(body)
    found = []
    for _ in range(reader.count(_ACTION.size + 4)):
        id_, pid, state, started_ns = reader.numbers(_ACTION)
        found.append(ActionState(id_, pid, state != 0, started_ns, reader.text()))
    return reader.whole(found)


def process_list(body: bytes) -> list[Process]:
    reader = _Reader(body)
    found = []
    for _ in range(reader.count(_PROCESS.size + 4)):
        pid, parent, action = reader.numbers(_PROCESS)
        found.append(Process(pid, parent, action, reader.text()))
    return reader.whole(found)


def _entry(reader: _Reader) -> Entry:
    return Entry._make((*reader.numbers(_ENTRY), reader.text(), reader.text()))


def _plain(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _short(what: str, body: bytes) -> Never:
    raise AgentProtocolError(f"{what} of {len(body)} bytes")


class _Reader:
    """Takes values off the front of a body."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def numbers(self, layout: Struct) -> tuple[int, ...]:
        at = self._advance(layout.size)
        return layout.unpack_from(self._body, at)

    def u32(self) -> int:
        at = self._advance(4)
        return int.from_bytes(self._body[at : at + 4], "little")

    def text(self) -> str:
        length = self.u32()
        at = self._advance(length)
        data = self._body[at : at + length]
        if 0 in data:
            raise AgentProtocolError("a string with a zero byte in it")
        return _plain(data)

    def count(self, smallest: int) -> int:
        """How many things follow; a number that cannot be true is refused before anything is made of it."""
        number = self.u32()
        if number * smallest > len(self._body) - self._at:
            raise AgentProtocolError(f"{number} entries in {len(self._body)} bytes")
        return number

    def whole(self, value: T) -> T:
        if self._at != len(self._body):
            raise AgentProtocolError(f"{len(self._body) - self._at} bytes too many in an answer")
        return value

    def _advance(self, size: int) -> int:
        at = self._at
        if size > len(self._body) - at:
            raise AgentProtocolError(f"an answer of {len(self._body)} bytes that is cut short")
        self._at = at + size
        return at
