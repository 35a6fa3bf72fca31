"""`excise shell` as a person has it: a terminal on both sides."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

EXCISE = Path(sys.executable).with_name("excise")


pytestmark = pytest.mark.timeout(120)


class Person:
    """Types at a terminal and reads what it shows."""

    def __init__(self, store: Path, *words: str) -> None:
        self.line, end = pty.openpty()
        self.shown = b""
        self.resize(33, 99)
        self.process = subprocess.Popen(
            [EXCISE, "shell", *words], stdin=end, stdout=end, stderr=end, close_fds=True,
            start_new_session=True, env={**os.environ, "EXCISE_STORE": str(store)},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # it is its own
        )  # fmt: skip
        self.settings = termios.tcgetattr(end)
        self.end = end

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.line, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def types(self, text: str) -> None:
        os.write(self.line, text.encode())

    def sees(self, text: str) -> None:
        """Waits until it is shown."""
        until = time.monotonic() + 40
        while text.encode() not in self.shown:
            if not select.select([self.line], [], [], max(0, until - time.monotonic()))[0]:
                pytest.fail(f"{text!r} is not in {self.shown!r}")
            self.shown += os.read(self.line, 4096)


@pytest.fixture(scope="module")
def store(able: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that has the base already."""
    folder = tmp_path_factory.mktemp("shell") / "store"
    env = {**os.environ, "EXCISE_STORE": str(folder)}
    subprocess.run([EXCISE, "run", "--", "true"], env=env, check=True)
    return folder


@pytest.fixture
def person(store: Path) -> Iterator[type[Person]]:
    """Somebody whose terminals are taken away afterwards."""
    there: list[Person] = []

    class Somebody(Person):
        def __init__(self, *words: str) -> None:
            super().__init__(store, *words)
            there.append(self)

    yield Somebody  # type: ignore[misc]
    for each in there:
        each.process.kill()
        each.process.wait()
        os.close(each.line)
        os.close(each.end)


def test_a_person_gets_a_terminal_of_the_right_size_and_its_exit_code(person) -> None:
    me = person()
    me.types("echo $((6 * 7)); tty; stty size\r")
    me.sees("42\r\n/dev/pts/0\r\n33 99\r\n")
    me.resize(20, 50)
    me.process.send_signal(28)  # SIGWINCH, which a kernel sends to the terminal's foreground
    me.types("sleep 0.1; stty size\r")
    me.sees("20 50\r\n")
    me.types("exit 3\r")
    assert me.process.wait(40) == 3
    assert termios.tcgetattr(me.end) == me.settings, "the terminal is as it was"


def test_what_is_typed_before_the_sandbox_is_there_is_not_lost(person) -> None:
    me = person()
    me.types("echo early; exit 4\r")
    me.sees("early\r\n")
    assert me.process.wait(40) == 4


def test_control_c_ends_the_command_and_not_the_shell(person) -> None:
    me = person("--", "bash", "--norc")
    me.types("sh -c 'echo $((6 * 7)); exec sleep 1000'\r")  # it has the terminal when it says so
    me.sees("42\r\n")
    me.types("\x03")
    me.sees("^C")
    me.types("echo $((7 * 7)); exit 5\r")
    me.sees("49\r\n")
    assert me.process.wait(40) == 5


def test_the_end_of_input_ends_it(person) -> None:
    me = person("--", "cat")
    me.types("one line\r")
    me.sees("one line\r\none line\r\n")
    me.types("\x04")
    assert me.process.wait(40) == 0


def test_without_a_terminal_it_says_what_to_do_instead() -> None:
    done = subprocess.run(
        [EXCISE, "shell"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "excise run -- CMD" in done.stderr
    assert len(done.stderr.splitlines()) == 1
