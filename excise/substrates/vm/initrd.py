"""The initial file system of a guest: our agent as its first process, and the kernel's modules. No program is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

_MAGIC = b"070701"
_DIRECTORY, _PROGRAM, _FILE = 0o040755, 0o100755, 0o100644
_END = "TRAILER!!!"


def initrd(agent: bytes, modules: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """A `newc` archive. Modules are loaded in their order, which their names keep."""
    return b"".join(_archive(agent, modules))


def _archive(agent: bytes, modules: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    number = 1
    yield _entry("init", _PROGRAM, agent, number)
    yield _entry("modules", _DIRECTORY, b"", number + 1)
    for place, (name, data) in enumerate(modules):
        yield _entry(f"modules/{place:02}-{name}", _FILE, data, number + 2 + place)
    yield _entry(_END, 0, b"", 0)


def _entry(name: str, mode: int, data: bytes, number: int) -> bytes:
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = _MAGIC + b"".join(b"%08X" % field for field in fields) + path
    return _whole(head) + _whole(data)


def _whole(data: bytes) -> bytes:
    """Everything begins at a multiple of four."""
    return data + bytes(-len(data) % 4)
