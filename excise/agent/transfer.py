"""Whole directories between this host and a sandbox, file by file: no tar, and no program, is needed inside.

Up: modes and links are kept, owners are given, times are not kept. Down: nothing that comes is believed (names
that lead elsewhere, one name twice), nothing belongs to anybody but the caller, and set-id bits are dropped.
Sockets, pipes and devices are left out, and the result says which. Local files are read and written in place,
which blocks an event loop for as long as the local disk takes.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from excise.agent import answers, files, messages, wire
from excise.agent.answers import Entry, Piece
from excise.agent.errors import AgentProtocolError, AgentRefused
from excise.agent.files import Batch
from excise.agent.messages import OWN, PIECE_BYTES
from excise.agent.mux import Exchange, Mux
from excise.agent.procedures import Procedure
from excise.errors import InputError

SMALL_BYTES = 64 * 1024
"""Files up to here come down many at a time."""

_ORDINARY = 0o777


@dataclass(slots=True)
class Moved:
    """What was copied, and what could not be: pipes, sockets and devices."""

    files: int = 0
    directories: int = 0
    links: int = 0
    size_bytes: int = 0
    left_out: list[str] = field(default_factory=list)


def upload(mux: Mux, source: Path, to: str, uid: int, gid: int) -> Procedure[Moved]:
    """Copy what is below `source` to below `to`, which is made if need be; files there are replaced."""
    if not source.is_dir():
        raise InputError(f"{source} is not a directory: give one to upload")
    return (yield from _Upload(mux, uid, gid).run(source, to.rstrip("/") or "/"))


def download(mux: Mux, path: str, target: Path) -> Procedure[Moved]:
    """Copy what is below `path` into `target`, which must be empty or not there yet."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            f"{target} is not an empty directory: name one, or one that is not there yet"
        )
    target.mkdir(parents=True, exist_ok=True)
    return (yield from _Download(mux).run(path.rstrip("/") or "/", target))


class _Upload:
    def __init__(self, mux: Mux, uid: int, gid: int) -> None:
        self._mux = mux
        self._uid, self._gid = uid, gid
        self._moved = Moved()
        self._batch = Batch(mux)
        self._links: dict[Exchange[object], tuple[str, str]] = {}

    def run(self, source: Path, to: str) -> Procedure[Moved]:
        yield from files.mkdir(self._mux, to, 0o755, parents=True)
        yield from self._directory(str(source), to)
        yield from self._flush()
        return self._moved

    def _directory(self, source: str, to: str) -> Procedure[None]:
        mode = stat.S_IMODE(Path(source).stat().st_mode)
        with os.scandir(source) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            inner = f"{to.rstrip('/')}/{entry.name}"
            if entry.is_symlink():
                target = os.readlink(entry.path)  # noqa: PTH115 - a Path would rewrite it
                self._link(target, inner)
            elif entry.is_dir():
                self._do(partial(messages.mkdir, path=inner, mode=0o755, parents=True))
                yield from self._directory(entry.path, inner)
            elif entry.is_file():
                yield from self._file(entry, inner)
            else:
                self._moved.left_out.append(entry.path)
            if self._batch.full():
                yield from self._flush()
        self._do(partial(messages.chmod, path=to, mode=mode))
        if self._uid != OWN or self._gid != OWN:
            self._do(partial(messages.chown, path=to, uid=self._uid, gid=self._gid))
        self._moved.directories += 1

    def _file(self, entry: os.DirEntry[str], to: str) -> Procedure[None]:
        with open(entry.path, "rb", opener=_without_following) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            first = file.read(PIECE_BYTES)
            owner = partial(messages.write, mode=mode, uid=self._uid, gid=self._gid)
            self._moved.files += 1
            if len(first) < PIECE_BYTES:
                self._moved.size_bytes += len(first)
                flags = wire.WRITE_FIRST | wire.WRITE_LAST
                self._do(partial(owner, path=to, data=first, flags=flags))
            else:
                yield from self._flush()
                pieces = self._counted(first, file.fileno())
                yield from files.write_pieces(self._mux, to, owner, pieces)
        self._do(partial(messages.chmod, path=to, mode=mode))

    def _counted(self, first: bytes, fd: int) -> Iterator[bytes]:
        piece = first
        while piece:
            self._moved.size_bytes += len(piece)
            yield piece
            piece = os.read(fd, PIECE_BYTES)

    def _link(self, target: str, path: str) -> None:
        request = partial(messages.symlink, target=target, path=path)
        self._links[self._batch.add(request, wire.OP_DONE, answers.done)] = (target, path)
        self._moved.links += 1

    def _do(self, request: partial[bytes]) -> None:
        self._batch.add(request, wire.OP_DONE, answers.done)

    def _flush(self) -> Procedure[None]:
        answered = yield from self._batch.flush()
        links, self._links = self._links, {}
        for exchange in answered:
            try:
                exchange.value()
            except AgentRefused as refused:
                if refused.number != errno.EEXIST or exchange not in links:
                    raise
                yield from self._replace_by_link(*links[exchange])

    def _replace_by_link(self, target: str, path: str) -> Procedure[None]:
        aside = f"{path}.{secrets.token_hex(8)}"
        yield from files.symlink(self._mux, target, aside)
        yield from files.rename(self._mux, aside, path)


class _Download:
    def __init__(self, mux: Mux) -> None:
        self._mux = mux
        self._moved = Moved()
        self._batch = Batch(mux)
        self._small: dict[Exchange[object], tuple[str, Path, int]] = {}

    def run(self, path: str, target: Path) -> Procedure[Moved]:
        yield from self._directory(path, target)
        return self._moved

    def _directory(self, path: str, target: Path) -> Procedure[None]:
        entries = yield from files.directory(self._mux, path)
        _check_names(path, entries)
        for entry in entries:
            inner, local = f"{path.rstrip('/')}/{entry.name}", target / entry.name
            kind = stat.S_IFMT(entry.mode)
            if kind == stat.S_IFLNK:
                local.symlink_to(entry.target)
                self._moved.links += 1
            elif kind == stat.S_IFDIR:
                local.mkdir(mode=0o700)
                yield from self._directory(inner, local)
                local.chmod(entry.mode & _ORDINARY)
            elif kind == stat.S_IFREG:
                yield from self._file(entry, inner, local)
            else:
                self._moved.left_out.append(inner)
        yield from self._flush()
        self._moved.directories += 1

    def _file(self, entry: Entry, path: str, local: Path) -> Procedure[None]:
        self._moved.files += 1
        if entry.size > SMALL_BYTES:
            yield from self._pieces(path, local, entry.mode, 0)
            return
        request = partial(messages.read, path=path, offset=0, most=SMALL_BYTES)
        exchange = self._batch.add(request, wire.OP_DATA, answers.piece)
        self._small[exchange] = (path, local, entry.mode)
        if self._batch.full():
            yield from self._flush()

    def _flush(self) -> Procedure[None]:
        yield from self._batch.flush()
        small, self._small = self._small, {}
        for exchange, (path, local, mode) in small.items():
            piece = exchange.value()
            assert isinstance(piece, Piece)
            self._keep(local, piece.data, mode)
            if not files.is_last(piece, len(piece.data), SMALL_BYTES):
                yield from self._pieces(path, local, mode, len(piece.data))

    def _pieces(self, path: str, local: Path, mode: int, offset: int) -> Procedure[None]:
        while True:
            piece = yield from files.read_piece(self._mux, path, offset, files.READ_BYTES)
            self._keep(local, piece.data, mode)
            offset += len(piece.data)
            if files.is_last(piece, offset, files.READ_BYTES):
                return

    def _keep(self, local: Path, data: bytes, mode: int) -> None:
        with open(local, "ab", opener=_without_following) as file:
            file.write(data)
            os.fchmod(file.fileno(), mode & _ORDINARY)
        self._moved.size_bytes += len(data)


def _check_names(path: str, entries: list[Entry]) -> None:
    names = {entry.name for entry in entries}
    if len(names) != len(entries):
        raise AgentProtocolError(f"{path} is said to hold one name twice")
    for name in names:
        if name in {"", ".", ".."} or "/" in name:
            raise AgentProtocolError(f"{path} is said to hold {name!r}, which is no name")


def _without_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
