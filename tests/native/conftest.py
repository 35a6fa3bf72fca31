"""The native program and its parts, built once per session with sanitizers; only what has changed is compiled."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).parents[2]
READ, WRITE, STAT, DIR, MKDIR, REMOVE, RENAME, SYMLINK, CHMOD, CHOWN, DIGEST = range(32, 43)
DONE, ERROR, DATA, ENTRY, ENTRIES = 67, 68, 69, 70, 71
NOBODY = 0xFFFFFFFF


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with `excise-agent-asan`, `test/` and `replay/`."""
    if not any(shutil.which(name) for name in (os.environ.get("CC", "gcc"), "cc", "clang")):
        if "compiler" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail("no C compiler", pytrace=False)
        pytest.skip("no C compiler: the native program cannot be built with sanitizers")
    done = subprocess.run(
        [ROOT / "native" / "build", "--sanitize"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ROOT / "build"


def text(value: str | bytes) -> bytes:
    data = os.fsencode(value)
    return struct.pack("<I", len(data)) + data


@dataclass(frozen=True)
class Entry:
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    links: int
    name: bytes
    target: bytes


class Files:
    """One request at a time, each a frame of its own: one process of `build/test/files`."""

    FIRST, LAST, PARENTS, IN_PLACE = 1, 2, 4, 8
    READ, WRITE, DIGEST = READ, WRITE, DIGEST

    def __init__(self, program: Path, *root: Path) -> None:
        self.process = subprocess.Popen(
            [program, *root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        """The sanitizers' verdict, leaks included, counts as much as what was asserted."""
        _, complaints = self.process.communicate(timeout=30)
        assert kind or (self.process.returncode, complaints) == (0, b"")

    def send(self, op: int, body: bytes, *, number: int | None = None) -> int:
        assert self.process.stdin
        self.id += number is None
        number = self.id if number is None else number
        self.process.stdin.write(struct.pack("<IBBHI", len(body), op, 0, 0, number) + body)
        self.process.stdin.flush()
        return number

    def receive(self, number: int) -> tuple[int, bytes]:
        assert self.process.stdout
        head = self.process.stdout.read(12)
        assert len(head) == 12, self.process.communicate(timeout=10)[1].decode()
        size, op, flags, zero, answered = struct.unpack("<IBBHI", head)
        assert (flags, zero, answered) == (0, 0, number)
        body = self.process.stdout.read(size)
        if op == ERROR:
            error, length = struct.unpack_from("<II", body)
            assert length == len(body) - 8
            raise OSError(error, body[8:].decode(errors="replace"))
        return op, body

    def ask(self, op: int, body: bytes) -> bytes:
        got, answer = self.receive(self.send(op, body))
        wanted = {READ: DATA, DIGEST: DATA, STAT: ENTRY, DIR: ENTRIES}.get(op, DONE)
        assert got == wanted
        return answer

    def read(self, path: str | bytes, offset: int = 0, most: int = 1 << 20) -> bytes:
        return self.ask(READ, text(path) + struct.pack("<QI", offset, most))[8:]

    def piece(self, number: int, flags: int, path: str, data: bytes, mode: int = 0o644) -> None:
        head = struct.pack("<IIII", flags, mode, NOBODY, NOBODY)
        self.send(WRITE, head + text(path) + data, number=number)

    def write(
        self,
        path: str,
        data: bytes,
        flags: int = 0,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] = (NOBODY, NOBODY),
    ) -> None:
        head = struct.pack("<IIII", self.FIRST | self.LAST | flags, mode, *owner)
        self.ask(WRITE, head + text(path) + data)

    def stat(self, path: str, *, follow: bool = True) -> Entry:
        return entries_in(
            struct.pack("<I", 1) + self.ask(STAT, struct.pack("<I", follow) + text(path))
        )[0]

    def list(self, path: str) -> list[Entry]:
        return entries_in(self.ask(DIR, text(path)))

    def mkdir(self, path: str, mode: int = 0o755, *, parents: bool = False) -> None:
        self.ask(MKDIR, struct.pack("<II", mode, parents) + text(path))

    def remove(self, path: str | bytes, *, whole: bool = False) -> None:
        self.ask(REMOVE, struct.pack("<I", whole) + text(path))

    def rename(self, old: str, new: str) -> None:
        self.ask(RENAME, text(old) + text(new))

    def symlink(self, target: str, path: str) -> None:
        self.ask(SYMLINK, text(target) + text(path))

    def chmod(self, path: str, mode: int) -> None:
        self.ask(CHMOD, struct.pack("<I", mode) + text(path))

    def chown(self, path: str, uid: int, gid: int) -> None:
        self.ask(CHOWN, struct.pack("<II", uid, gid) + text(path))

    def digest(self, path: str) -> tuple[int, str]:
        answer = self.ask(DIGEST, text(path))
        return struct.unpack_from("<Q", answer)[0], answer[8:].hex()


def entries_in(body: bytes) -> list[Entry]:
    count, at, found = struct.unpack_from("<I", body)[0], 4, []
    for _ in range(count):
        fixed = struct.unpack_from("<IIIQqI", body, at)
        at += 32
        strings = []
        for _ in range(2):
            length = struct.unpack_from("<I", body, at)[0]
            strings.append(body[at + 4 : at + 4 + length])
            at += 4 + length
        found.append(Entry(*fixed, *strings))
    assert at == len(body)
    return found


@pytest.fixture
def start(built: Path) -> Iterator[Callable[..., Files]]:
    """Start the file operations alone, `root` being their root; at the end the sanitizers are asked."""
    if os.geteuid() != 0:
        pytest.skip("the file operations are tried as root, in a root of their own")
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(Files(built / "test" / "files", *words))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def files(start: Callable[..., Files], root: Path) -> Files:
    """In a sandbox whose root is the folder `root`."""
    return start(root)


@pytest.fixture
def files_on_an_old_kernel(built: Path, start: Callable[..., Files]) -> Iterator[Files]:
    """Without openat2, close_range and fchmodat2, and with the host's own root."""
    with Files(built / "test" / "old_kernel", built / "test" / "files") as files:
        yield files
