"""What a client can ask of the agent, as bytes. No I/O, and nothing that the agent would have to refuse as malformed."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from excise.agent import wire
from excise.agent.wire import (
    EXEC_HEAD,
    EXEC_LIMIT,
    HEAD,
    REQUEST_LIMIT,
    U16_PAIR,
    U32,
    U32_PAIR,
    U64,
    WRITE_HEAD,
)
from excise.errors import InputError
from excise.types import MIB

PIECE_BYTES = MIB
"""Standard input and files that are larger travel in pieces of this size."""

INLINE_STDIN_BYTES = 4 * MIB
"""Standard input up to here is part of the request itself."""

OWN = 0xFFFF_FFFF
"""As an owner: whoever the agent is. That is root in a jail."""

LONGEST_MS = 0xFFFF_FFFF


class Packed(NamedTuple):
    """Strings as they stand in a request; made once when many actions share them, as they do an environment."""

    number: int
    data: bytes


NOTHING = Packed(0, b"")


@dataclass(frozen=True, slots=True)
class Exec:
    """One command. `env` is the whole environment; `user` is a name or number, either with `:group`.

    `one_shot` says that argv is `bash -c SCRIPT`, which a shell that was spawned ahead may serve.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    env: Packed | Mapping[str, str] = NOTHING
    user: str = ""
    stdin: bytes = b""
    timeout_s: float | None = 60.0
    output_limit: int = 64 * MIB
    merge: bool = False
    one_shot: bool = False
    pty: bool = False
    rows: int = 24
    columns: int = 80
    limits: tuple[tuple[int, int, int], ...] = ()
    """(RLIMIT_*, soft, hard) each; -1 is unlimited."""
    umask: int = 0o022


def pack_strings(values: Iterable[str]) -> Packed:
    """Strings with their lengths, one behind the other."""
    parts = [_text(value) for value in values]
    return Packed(len(parts), b"".join(parts))


def pack_env(env: Mapping[str, str]) -> Packed:
    """An environment, to be given to any number of actions."""
    for name in env:
        if not name or "=" in name:
            raise InputError(f"{name!r} cannot be the name of an environment variable")
    return pack_strings(f"{name}={value}" for name, value in env.items())


def exec_(id_: int, what: Exec, flags: int = 0, stdin: bytes = b"") -> bytes:
    """OP_EXEC. `stdin` goes along; what does not go along was sent before, or comes later, as `flags` say."""
    return _exec(wire.OP_EXEC, id_, what, flags, stdin)


def shell_open(id_: int, what: Exec) -> bytes:
    """OP_SHELL_OPEN: the command's surroundings without a command."""
    if what.argv:
        raise InputError("a persistent shell is opened without arguments; give it scripts instead")
    return _exec(wire.OP_SHELL_OPEN, id_, what, 0, b"")


def _exec(op: int, id_: int, what: Exec, flags: int, stdin: bytes) -> bytes:
    if what.merge:
        flags |= wire.EXEC_MERGE
    if what.one_shot:
        flags |= wire.EXEC_ONE_SHOT
    if what.pty:
        flags |= wire.EXEC_PTY | wire.EXEC_STREAM
    env = what.env if type(what.env) is Packed else pack_env(what.env)  # type: ignore[arg-type]
    parts = [b"", _text(what.user), _text(what.cwd), *map(_text, what.argv), env.data]
    try:
        for resource, soft, hard in what.limits:
            parts.append(EXEC_LIMIT.pack(resource, soft & _UNLIMITED, hard & _UNLIMITED))
        parts.append(stdin)
        head = EXEC_HEAD.pack(
            flags, milliseconds(what.timeout_s), what.output_limit, what.rows, what.columns,
            len(what.argv), env.number, len(what.limits), what.umask, len(stdin),
        )  # fmt: skip
    except struct.error as error:
        raise InputError(f"a field of the command is out of range: {error}") from None
    length = len(head) + sum(map(len, parts))
    if length > REQUEST_LIMIT:
        raise InputError(
            f"the command with its environment takes {length} bytes, and {REQUEST_LIMIT} is the most; "
            "put what is large into stdin or a file"
        )
    parts[0] = HEAD.pack(length, op, 0, 0, id_) + head
    return b"".join(parts)


def stdin_pieces(id_: int, data: bytes | memoryview) -> Iterator[bytes]:
    """OP_STDIN, in pieces; nothing for nothing."""
    view = memoryview(data)
    for at in range(0, len(view), PIECE_BYTES):
        yield _frame(wire.OP_STDIN, id_, bytes(view[at : at + PIECE_BYTES]))


def stdin_end(id_: int) -> bytes:
    return _frame(wire.OP_STDIN_END, id_)


def hello(id_: int) -> bytes:
    return _frame(wire.OP_HELLO, id_, U32.pack(wire.PROTOCOL_VERSION))


def ping(id_: int, body: bytes = b"") -> bytes:
    return _frame(wire.OP_PING, id_, body)


def signal(id_: int, number: int, *, whole_tree: bool) -> bytes:
    if not 0 <= number <= 64:
        raise InputError(f"{number} is not a signal: take one of 0 to 64")
    return _frame(wire.OP_SIGNAL, id_, U32_PAIR.pack(number, whole_tree))


def resize(id_: int, rows: int, columns: int) -> bytes:
    try:
        return _frame(wire.OP_RESIZE, id_, U16_PAIR.pack(rows, columns))
    except struct.error:
        raise InputError(f"a terminal cannot have {rows} rows and {columns} columns") from None


def credit(id_: int, taken: int) -> bytes:
    return _frame(wire.OP_CREDIT, id_, U32.pack(taken))


def list_actions(id_: int) -> bytes:
    return _frame(wire.OP_LIST, id_)


def attach(action: int) -> bytes:
    """Head and body name the action: whatever answers comes under its id."""
    return _frame(wire.OP_ATTACH, action, U32.pack(action))


def detach(action: int) -> bytes:
    return _frame(wire.OP_DETACH, action, U32.pack(action))


def shell_run(
    id_: int, shell: int, script: str, timeout_s: float | None, output_limit: int
) -> bytes:
    head = U32_PAIR.pack(shell, milliseconds(timeout_s)) + U64.pack(output_limit)
    return _frame(wire.OP_SHELL_RUN, id_, head + _text(script))


def shell_close(id_: int, shell: int) -> bytes:
    return _frame(wire.OP_SHELL_CLOSE, id_, U32.pack(shell))


def quiet(id_: int, timeout_s: float | None) -> bytes:
    return _frame(wire.OP_QUIET, id_, U32.pack(milliseconds(timeout_s)))


def processes(id_: int) -> bytes:
    return _frame(wire.OP_PROCESSES, id_)


def environment(id_: int) -> bytes:
    return _frame(wire.OP_ENVIRONMENT, id_)


def thaw(id_: int, now_ns: int, seed: bytes) -> bytes:
    return _frame(wire.OP_THAW, id_, U64.pack(now_ns) + seed)


def read(id_: int, path: str, offset: int, most: int) -> bytes:
    return _frame(wire.OP_READ, id_, _text(path) + U64.pack(offset) + U32.pack(most))


def write(
    id_: int,
    path: str,
    data: bytes,
    *,
    flags: int,
    mode: int = 0o644,
    uid: int = OWN,
    gid: int = OWN,
) -> bytes:
    """One piece of a file; the pieces of one file share their id, and those after the first name no path."""
    try:
        head = WRITE_HEAD.pack(flags, mode, uid, gid)
    except struct.error:
        raise InputError(f"mode {mode:o} and owner {uid}:{gid} cannot be a file's") from None
    return _frame(wire.OP_WRITE, id_, head + _text(path) + data)


def write_abort(id_: int) -> bytes:
    """Forget the pieces that came: the file begins anew, where none can be."""
    return write(id_, "/", b"", flags=wire.WRITE_FIRST | wire.WRITE_LAST)


def stat(id_: int, path: str, *, follow: bool) -> bytes:
    return _frame(wire.OP_STAT, id_, U32.pack(follow) + _text(path))


def directory(id_: int, path: str) -> bytes:
    return _frame(wire.OP_DIR, id_, _text(path))


def mkdir(id_: int, path: str, mode: int, *, parents: bool) -> bytes:
    return _frame(wire.OP_MKDIR, id_, _numbers(mode, parents) + _text(path))


def remove(id_: int, path: str, *, tree: bool) -> bytes:
    return _frame(wire.OP_REMOVE, id_, U32.pack(tree) + _text(path))


def rename(id_: int, path: str, to: str) -> bytes:
    return _frame(wire.OP_RENAME, id_, _text(path) + _text(to))


def symlink(id_: int, target: str, path: str) -> bytes:
    return _frame(wire.OP_SYMLINK, id_, _text(target) + _text(path))


def chmod(id_: int, path: str, mode: int) -> bytes:
    return _frame(wire.OP_CHMOD, id_, _numbers(mode) + _text(path))


def chown(id_: int, path: str, uid: int, gid: int) -> bytes:
    return _frame(wire.OP_CHOWN, id_, _numbers(uid, gid) + _text(path))


def digest(id_: int, path: str) -> bytes:
    return _frame(wire.OP_DIGEST, id_, _text(path))


def look(id_: int, paths: Sequence[str], kinds: Sequence[str]) -> bytes:
    whole = (U32.pack(0) + _text(path) for path in paths)
    alone = (U32.pack(1) + _text(path) for path in kinds)
    return _frame(wire.OP_LOOK, id_, U32.pack(len(paths) + len(kinds)) + b"".join((*whole, *alone)))


def milliseconds(timeout_s: float | None) -> int:
    """On the wire 0 is no limit, so that the shortest limit is 1."""
    if timeout_s is None:
        return 0
    if not timeout_s >= 0:
        raise InputError(f"a time limit of {timeout_s} seconds: give 0 or more, or None for none")
    if timeout_s >= LONGEST_MS / 1000:
        return LONGEST_MS
    return max(1, math.ceil(timeout_s * 1000))


_UNLIMITED = 0xFFFF_FFFF_FFFF_FFFF


def _frame(op: int, id_: int, body: bytes = b"") -> bytes:
    if len(body) > REQUEST_LIMIT:
        raise InputError(f"a request of {len(body)} bytes, and {REQUEST_LIMIT} is the most")
    return HEAD.pack(len(body), op, 0, 0, id_) + body


def _text(value: str) -> bytes:
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(f"{value!r} cannot be encoded: {error.reason}") from None
    if b"\0" in data:
        raise InputError(f"{value[:60]!r} contains a zero byte, which no argument or path can")
    return U32.pack(len(data)) + data


def _numbers(*values: int) -> bytes:
    try:
        return struct.pack(f"<{len(values)}I", *values)
    except struct.error:
        raise InputError(f"{values} are not all numbers from 0 to {0xFFFF_FFFF}") from None
