"""The whole agent under sanitizers, in the placed role: what it leaks, it says when it ends."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

HELLO, PING, EXEC, STDIN, SIGNAL, LIST, SHELL_OPEN, SHELL_RUN = 1, 2, 3, 4, 6, 9, 12, 13
READ, WRITE, REMOVE, DIGEST = 32, 33, 37, 42
RESULT, OUTPUT, PONG, DONE, ERROR, DATA, ACTIONS = 64, 65, 66, 67, 68, 69, 72
STREAM, PTY, BACKGROUND, STDIN_KEPT, ONE_SHOT = 1, 2, 4, 16, 64
PATH = b"PATH=/usr/sbin:/usr/bin:/sbin:/bin"


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def frame(op: int, body: bytes = b"", number: int = 1) -> bytes:
    return struct.pack("<IBBHI", len(body), op, 0, 0, number) + body


def execution(*argv: bytes, flags: int = 0, timeout_ms: int = 0) -> bytes:
    head = struct.pack("<IIQHHHHHHI", flags, timeout_ms, 1 << 20, 24, 80, len(argv), 1, 0, 0o22, 0)
    return head + b"".join(map(text, (b"", b"/", *argv, PATH)))


class Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.stream = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *rest: object) -> None:
        self.stream.close()
        self.connection.close()

    def send(self, *frames: bytes) -> None:
        self.connection.sendall(b"".join(frames))

    def receive(self) -> tuple[int, int, bytes]:
        size, op, _, _, number = struct.unpack("<IBBHI", self.stream.read(12))
        return op, number, self.stream.read(size)

    def ask(self, op: int, body: bytes = b"", number: int = 1) -> tuple[int, bytes]:
        self.send(frame(op, body, number))
        answered, of, answer = self.receive()
        assert of == number
        return answered, answer


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    _, complaints = process.communicate(timeout=30)
    return process.returncode, complaints


@pytest.fixture
def client(built: Path) -> Iterator[Client]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [built / "excise-agent-asan", "agent", "--stdio"],
            stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        )  # fmt: skip
    with Client(ours) as client:
        yield client
    assert ended(process) == (0, b"")


@pytest.fixture
def connect(built: Path, tmp_path: Path) -> Iterator[Callable[[], Client]]:
    """Clients of one agent that listens, one after the other."""
    path = tmp_path / "agent"
    process = subprocess.Popen(
        [built / "excise-agent-asan", "agent", "--unix", path], stderr=subprocess.PIPE
    )

    def connect() -> Client:
        connection = socket.socket(socket.AF_UNIX)
        until(path.exists)
        connection.connect(str(path))
        return Client(connection)

    yield connect
    process.terminate()
    assert ended(process)[1] == b""


def until(found: Callable[[], object]) -> None:
    for _ in range(1000):
        if found():
            return
        time.sleep(0.02)
    pytest.fail("it never came to be")


def readers_of(path: Path) -> list[int]:
    """Processes that have the file open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == path:
                found.append(int(link.parts[2]))
        except OSError:
            continue  # it is gone by now
    return found


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file whose digest takes for ever."""
    path = tmp_path / "endless"
    path.touch()
    os.truncate(path, 1 << 42)
    return path


def test_an_agent_leaks_nothing_whatever_it_was_asked(client: Client, tmp_path: Path) -> None:
    assert client.ask(HELLO, struct.pack("<I", 1))[0] == HELLO
    assert client.ask(EXEC, execution(b"echo", b"hi"))[0] == RESULT
    assert client.ask(EXEC, execution(b"/missing"))[0] == RESULT
    assert client.ask(EXEC, execution(b"sleep", b"60", timeout_ms=50))[0] == RESULT
    assert client.ask(EXEC, execution(b"bash", b"-c", b"echo a", flags=ONE_SHOT))[0] == RESULT
    client.send(frame(STDIN, b"kept"), frame(EXEC, execution(b"cat", flags=STDIN_KEPT)))
    assert client.receive()[2].endswith(b"kept")
    client.send(frame(EXEC, execution(b"echo", b"x", flags=STREAM | PTY), 7))
    while client.receive()[0] != RESULT:
        pass
    assert client.ask(SHELL_OPEN, execution(), 20)[0] == DONE
    script = struct.pack("<IIQ", 20, 0, 1 << 20) + text(b"cd /; x=1; pwd")
    assert client.ask(SHELL_RUN, script)[0] == RESULT
    assert client.ask(EXEC, execution(b"sleep", b"60", flags=BACKGROUND), 9)[0] == DONE
    assert client.ask(LIST)[0] == ACTIONS
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    path = text(os.fsencode(tmp_path / "f"))
    assert client.ask(READ, path + struct.pack("<QI", 0, 1 << 20))[0] == DATA
    assert client.ask(DIGEST, text(os.fsencode(tmp_path)))[0] == DATA
    client.send(frame(WRITE, struct.pack("<IIII", 1, 0o644, 0, 0) + path + b"never finished"))
    assert client.ask(PING)[0] == PONG


def test_what_no_agent_understands_is_refused(client: Client) -> None:
    for op in range(256):
        for body in (b"", b"\xff" * 3, b"\xff" * 200):
            if op in {STDIN, 5, 7, 8, 15}:  # not answered, or the end of everything
                continue
            if op != PING:
                assert client.ask(op, body)[0] in {ERROR, ACTIONS, DATA, 73}, op
    assert client.ask(PING)[0] == PONG


def test_frames_larger_than_allowed_end_the_connection(client: Client) -> None:
    assert client.ask(PING)[0] == PONG
    client.send(struct.pack("<IBBHI", (8 << 20) + 1, PING, 0, 0, 2))
    assert client.stream.read() == b""


def test_a_client_that_goes_in_the_middle_of_a_frame_leaves_no_half_file(
    client: Client, tmp_path: Path
) -> None:
    head = struct.pack("<IIII", 1, 0o644, 0xFFFFFFFF, 0xFFFFFFFF)
    path = text(os.fsencode(tmp_path / "f"))
    client.send(frame(WRITE, head + path + b"a piece"), frame(PING), frame(PING)[:7])
    assert client.receive()[0] == PONG
    assert len(list(tmp_path.iterdir())) == 1
    client.connection.shutdown(socket.SHUT_RDWR)
    until(lambda: not list(tmp_path.iterdir()))


def test_a_digest_whose_process_is_killed_is_answered_all_the_same(
    client: Client, endless: Path
) -> None:
    client.send(frame(DIGEST, text(os.fsencode(endless)), 5))
    until(lambda: readers_of(endless))
    assert client.ask(PING, number=6)[0] == PONG, "the agent itself never waits for it"
    os.kill(readers_of(endless)[0], signal.SIGKILL)
    op, number, body = client.receive()
    assert (op, number) == (ERROR, 5)
    assert b"killed before its end" in body


def test_what_a_client_asked_for_ends_with_it_and_is_not_told_to_the_next(
    connect: Callable[[], Client], endless: Path
) -> None:
    with connect() as client:
        client.send(frame(DIGEST, text(os.fsencode(endless)), 5))
        until(lambda: readers_of(endless))
    with connect() as client:
        until(lambda: not readers_of(endless))
        assert client.ask(PING, number=6)[0] == PONG
