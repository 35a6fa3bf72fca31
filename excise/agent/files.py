"""Files in the sandbox without spawning a command: the procedures of `procedures`, for OP_READ to OP_LOOK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from excise.agent import answers, messages, wire
from excise.agent.answers import Entry, Piece, Tree
from excise.agent.messages import OWN, PIECE_BYTES
from excise.agent.mux import Exchange, Mux
from excise.agent.procedures import Procedure, Step, ask
from excise.types import MIB

READ_BYTES = 4 * MIB
"""The most that one OP_READ asks for."""

SLOW_PATIENCE_S = 600.0
"""For what walks whole trees: digests, and removal."""


def read(mux: Mux, path: str, offset: int = 0, most: int | None = None) -> Procedure[bytes]:
    """The file from `offset`, at most `most` bytes of it. It must not change while it is read."""
    found = []
    left = most
    while left is None or left > 0:
        want = READ_BYTES if left is None else min(READ_BYTES, left)
        piece = yield from read_piece(mux, path, offset, want)
        found.append(piece.data)
        offset += len(piece.data)
        if left is not None:
            left -= len(piece.data)
        if is_last(piece, offset, want):
            break
    return found[0] if len(found) == 1 else b"".join(found)


def read_piece(mux: Mux, path: str, offset: int, most: int) -> Procedure[Piece]:
    return (
        yield from ask(
            mux,
            partial(messages.read, path=path, offset=offset, most=most),
            wire.OP_DATA,
            answers.piece,
        )
    )


def is_last(piece: Piece, end: int, wanted: int) -> bool:
    """Whether nothing follows `end`. Files of /proc say that they are empty, and are not."""
    return len(piece.data) < wanted or 0 < piece.size <= end


def write(
    mux: Mux,
    path: str,
    data: bytes,
    *,
    mode: int = 0o644,
    uid: int = OWN,
    gid: int = OWN,
    parents: bool = False,
    in_place: bool = False,
) -> Procedure[None]:
    """Make the file, whole or not at all; `in_place` truncates and writes what is there instead."""
    flags = wire.WRITE_PARENTS * parents | wire.WRITE_IN_PLACE * in_place
    owner = partial(messages.write, mode=mode, uid=uid, gid=gid)
    view = memoryview(data)
    pieces = (bytes(view[at : at + PIECE_BYTES]) for at in range(0, len(view), PIECE_BYTES))
    yield from write_pieces(mux, path, owner, pieces, flags)


def write_pieces(
    mux: Mux, path: str, owner: Callable[..., bytes], pieces: Iterable[bytes], flags: int = 0
) -> Procedure[None]:
    """A file of any size, whose pieces are made while it is written. One answer comes, for all of them."""
    id_ = mux.new_id()
    coming = iter(pieces)
    data, following = next(coming, b""), next(coming, None)
    flags |= wire.WRITE_FIRST
    request = owner(id_, path, data, flags=flags | wire.WRITE_LAST * (following is None))
    exchange = mux.open(id_, wire.OP_DONE, answers.done, SLOW_PATIENCE_S)
    exchange.aborts = messages.write_abort(id_)
    yield Step(request, (exchange,), following is None)
    while following is not None:
        data, following = following, next(coming, None)
        if exchange.done:  # refused: what else there is need not be sent
            data, following = b"", None
        last = following is None
        yield Step(owner(id_, "", data, flags=wire.WRITE_LAST * last), (exchange,), last)
    exchange.value()


def stat(mux: Mux, path: str, *, follow: bool) -> Procedure[Entry]:
    request = partial(messages.stat, path=path, follow=follow)
    return (yield from ask(mux, request, wire.OP_ENTRY, answers.entry))


def look(mux: Mux, paths: Sequence[str], kinds: Sequence[str]) -> Procedure[bytes]:
    """How all of it looks, as bytes that are equal as long as it looks the same; of `kinds` only their kind."""
    request = partial(messages.look, paths=paths, kinds=kinds)
    return (yield from ask(mux, request, wire.OP_DATA, bytes))


def directory(mux: Mux, path: str) -> Procedure[list[Entry]]:
    """What is in a directory, sorted by name."""
    request = partial(messages.directory, path=path)
    return (yield from ask(mux, request, wire.OP_ENTRIES, answers.entries))


def mkdir(mux: Mux, path: str, mode: int, *, parents: bool) -> Procedure[None]:
    yield from _do(mux, partial(messages.mkdir, path=path, mode=mode, parents=parents))


def remove(mux: Mux, path: str, *, tree: bool) -> Procedure[None]:
    request = partial(messages.remove, path=path, tree=tree)
    yield from ask(mux, request, wire.OP_DONE, answers.done, SLOW_PATIENCE_S)


def rename(mux: Mux, path: str, to: str) -> Procedure[None]:
    yield from _do(mux, partial(messages.rename, path=path, to=to))


def symlink(mux: Mux, target: str, path: str) -> Procedure[None]:
    yield from _do(mux, partial(messages.symlink, target=target, path=path))


def chmod(mux: Mux, path: str, mode: int) -> Procedure[None]:
    yield from _do(mux, partial(messages.chmod, path=path, mode=mode))


def chown(mux: Mux, path: str, uid: int, gid: int) -> Procedure[None]:
    yield from _do(mux, partial(messages.chown, path=path, uid=uid, gid=gid))


def digest(mux: Mux, path: str) -> Procedure[Tree]:
    """SHA-256 over everything below `path`."""
    request = partial(messages.digest, path=path)
    return (yield from ask(mux, request, wire.OP_DATA, answers.digest, SLOW_PATIENCE_S))


def _do(mux: Mux, request: Callable[[int], bytes]) -> Procedure[None]:
    yield from ask(mux, request, wire.OP_DONE, answers.done)


class Batch:
    """Requests that are sent together and waited for together, so that many small files cost few round trips."""

    def __init__(self, mux: Mux) -> None:
        self._mux = mux
        self._data: list[bytes] = []
        self._exchanges: list[Exchange[object]] = []
        self._size = 0

    def add(
        self, request: Callable[[int], bytes], op: int, decode: Callable[[bytes], object]
    ) -> Exchange[object]:
        """Ask for this with the next `flush`; the exchange has the answer after it."""
        exchange = Exchange(self._mux.new_id(), op, decode, SLOW_PATIENCE_S)
        data = request(exchange.id)
        self._data.append(data)
        self._exchanges.append(exchange)
        self._size += len(data)
        return exchange

    def full(self) -> bool:
        """It is time to send what has been added."""
        return self._size >= PIECE_BYTES or len(self._exchanges) >= 128

    def flush(self) -> Procedure[list[Exchange[object]]]:
        """Send what was added and wait for all of it."""
        exchanges, self._exchanges = self._exchanges, []
        data, self._data, self._size = b"".join(self._data), [], 0
        for exchange in exchanges:
            self._mux.claim(exchange)
        if exchanges:
            yield Step(data, tuple(exchanges))
        return exchanges
