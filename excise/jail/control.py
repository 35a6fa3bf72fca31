"""What the driver says to its spawner and hears back (native/control.h): bytes only, no socket.

A request is a body and the operation; who sends it adds the tag by which the answer is known again.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from excise.errors import InputError
from excise.types import Limits

VERSION = 1
MESSAGE_BYTES = 128 << 10
MOST_LOWERS = 400
MOST_BINDS = 64
MOST_NAME = 64
PERIOD_US = 100_000
LEAST_QUOTA_US = 1_000

_HEAD = struct.Struct("<II")
_NUMBER = struct.Struct("<I")
_STACK = struct.Struct("<IHH")
_BOX = struct.Struct("<IIQQQQII")
_CREATED = struct.Struct("<II")
_GONE = struct.Struct("<IIiI")
_HELLO = struct.Struct("<II")


class Op(IntEnum):
    """What can be asked."""

    STACK = 1
    UNSTACK = 2
    CREATE = 3
    DESTROY = 4
    SNAPSHOT = 5
    FORGET = 6
    UPPER = 7
    FROZEN = 8
    HELLO = 9
    CREATE_LATER = 10


class Said(IntEnum):
    """What can come back."""

    OK = 64
    FAILED = 65
    CREATED = 66
    GONE = 67


class Fact(IntFlag):
    """What the spawner found out about the kernel."""

    FAST_ATTACH = 1
    LANDLOCK = 2
    IDMAP = 4
    CGROUP2 = 8


class ControlError(ValueError):
    """A message that is not of this protocol: driver and spawner are not of the same build."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the host, shown read-only at `target` inside."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What one jail may use, in the units of the kernel; 0 and "" mean: not limited."""

    disk_bytes: int = 0
    inodes: int = 0
    memory_bytes: int = 0
    pids: int = 0
    cpu_quota_us: int = 0
    open_files: int = 0
    cpuset: str = ""

    @classmethod
    def of(cls, limits: Limits, *, inodes: int = 0, open_files: int = 0) -> BoxLimits:
        """The same in the kernel's units; a share of a CPU is never rounded down to nothing."""
        quota = 0
        if limits.cpus is not None:
            quota = max(LEAST_QUOTA_US, math.ceil(limits.cpus * PERIOD_US))
        return cls(
            disk_bytes=limits.disk_bytes or 0,
            inodes=inodes,
            memory_bytes=limits.memory_bytes or 0,
            pids=limits.pids or 0,
            cpu_quota_us=quota,
            open_files=open_files,
            cpuset=",".join(map(str, limits.cpuset or ())),
        )


@dataclass(frozen=True, slots=True)
class Ok:
    tag: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """`stage` says what was being done: a part of a jail, or the path of a lower or bind."""

    tag: int
    error: int
    stage: str


@dataclass(frozen=True, slots=True)
class Created:
    """`pid` is the jail's first process as the host numbers it; its cgroups are called box-`kit`."""

    tag: int
    pid: int
    kit: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A jail is dead: its exit code, or minus the signal, and how often it had run out of memory."""

    box: int
    kit: int
    end: int
    oom_kills: int


Answer = Ok | Failed | Created | Gone


def head(op: Op, tag: int) -> bytes:
    """What every request begins with."""
    return _HEAD.pack(op, tag)


def number(*values: int) -> bytes:
    """A body of plain numbers: all but those of stacks and boxes."""
    return b"".join(map(_NUMBER.pack, values))


def stack(name: int, lowers: Sequence[str | int], binds: Sequence[Bind] = ()) -> bytes:
    """The body of STACK. A lower is a path, or the number of a snapshot; top first."""
    if not 1 <= len(lowers) <= MOST_LOWERS:
        raise InputError(
            f"a jail stands on 1 to {MOST_LOWERS} layers, not {len(lowers)}: merge some"
        )
    if len(binds) > MOST_BINDS:
        raise InputError(f"at most {MOST_BINDS} binds, not {len(binds)}: bind a common parent")
    body = [_STACK.pack(name, len(lowers), len(binds))]
    for lower in lowers:
        if isinstance(lower, int):
            body.append(b"\1" + _NUMBER.pack(lower))
        else:
            body.append(b"\0" + _string(_absolute(lower, "layer"), 4096))
    for bind in binds:
        body += (_string(_absolute(bind.source, "bind"), 4096), _string(_target(bind.target), 255))
    whole = b"".join(body)
    if len(whole) > MESSAGE_BYTES - _HEAD.size:
        raise InputError(
            "the paths of all layers together are too long: keep the store nearer to /"
        )
    return whole


def box(name: int, stack: int, limits: BoxLimits, hostname: str) -> bytes:
    """The body of CREATE."""
    numbers = (limits.disk_bytes, limits.inodes, limits.memory_bytes, limits.pids)
    head = _BOX.pack(name, stack, *numbers, limits.cpu_quota_us, limits.open_files)
    return head + _string(hostname, MOST_NAME) + _string(limits.cpuset, 255)


def answer(message: bytes) -> Answer:
    """Read one message of the spawner."""
    try:
        op, tag = _HEAD.unpack_from(message)
        body = message[_HEAD.size :]
        match op:
            case Said.OK:
                return Ok(tag, body)
            case Said.FAILED:
                return _failed(tag, body)
            case Said.CREATED:
                return Created(tag, *_CREATED.unpack(body))
            case Said.GONE:
                return Gone(*_GONE.unpack(body))
    except (struct.error, UnicodeDecodeError) as error:
        raise ControlError(f"not an answer of a spawner: {message[:40]!r}") from error
    raise ControlError(f"not an answer of a spawner: {message[:40]!r}")


def hello(body: bytes) -> Fact:
    """The facts in the answer to HELLO, if the spawner is of this version."""
    try:
        version, facts = _HELLO.unpack(body)
    except struct.error as error:
        raise ControlError("a greeting of the wrong size") from error
    if version != VERSION:
        raise ControlError(f"the spawner speaks version {version} and we {VERSION}: rebuild it")
    return Fact(facts)


def _failed(tag: int, body: bytes) -> Failed:
    error, length = struct.unpack_from("<IH", body)
    if len(body) != 6 + length:
        raise struct.error
    return Failed(tag, error, body[6:].decode("utf-8", "surrogateescape"))


def _string(text: str, most: int) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > most or b"\0" in data:
        raise InputError(f"longer than {most} bytes, or with a zero inside: {text[:80]!r}")
    return struct.pack("<H", len(data)) + data


def _absolute(path: str, what: str) -> str:
    if not path.startswith("/"):
        raise InputError(f"the path of a {what} must be absolute, not {path!r}")
    return path


def _target(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or path == "/" or ".." in parts:
        raise InputError(f"a bind's target is an absolute path inside, without '..': {path!r}")
    return path
