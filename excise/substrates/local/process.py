"""One bare process on the event loop: fork, exec, pipes, reap; no threads, nothing between it and the kernel.

Start-up is `subprocess.Popen` (vfork and exec in C, with a directory and a process group of its own; a new
session would cost a millisecond more where the kernel groups its scheduling by session); its end is a pidfd
that the event loop watches. Pipes are read as they fill, so any amount of output flows, and what
the process wrote before it ended is taken when it ends: a background child that still holds a pipe holds
nothing up. Such a pipe is read on and thrown away, so that the child can go on writing into it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from excise.types import Fault

CHUNK_BYTES = 64 * 1024
"""What a pipe holds on Linux unless somebody asks for more."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, where, with what; `stdin` None means: a pipe to write into."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | None = b""
    cpuset: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended, in the shell's numbers, and what it took from fork to reap."""

    code: int
    duration_ns: int
    cpu_ns: int


class NotStarted(Exception):
    """The command could not be started, and that is the command's own fault."""

    def __init__(self, fault: Fault, code: int, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.code = code
        self.message = message


class Stream:
    """The reading end of a pipe; gives to `sink` what arrives, until its end or until closed."""

    def __init__(self, fd: int, sink: Callable[[bytes], object]) -> None:
        self.sink = sink
        self.closed = False
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read, CHUNK_BYTES)

    def _read(self, size: int) -> None:
        try:
            data = os.read(self._fd, size)
        except BlockingIOError:
            return
        if data:
            self.sink(data)
        else:
            self.close()

    def take_rest(self) -> None:
        """Take what is in the pipe at this moment; what comes later is read into nothing."""
        if self.closed:
            return
        there = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4))[0]
        if there:
            self._read(there)
        self.sink = _ignore
        self._read(CHUNK_BYTES)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            os.close(self._fd)


class Child:
    """A process that was started; `exit` is set once it has ended and been reaped."""

    def __init__(
        self,
        command: Command,
        stdout: Callable[[bytes], object],
        stderr: Callable[[bytes], object],
    ) -> None:
        self.exit: Exit | None = None
        self.stdin: int | None = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for _ in range(2):
                reading, writing = os.pipe()
                ours.append(reading)
                theirs.append(writing)
            end, self.stdin = _stdin(command.stdin)
            theirs.append(end)
            self._started_ns = time.perf_counter_ns()
            self.pid = _start(command, end, theirs[0], theirs[1])
            self._pidfd = _pidfd(self.pid)
        except BaseException:
            for fd in (*ours, *(() if self.stdin is None else (self.stdin,))):
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self._loop.add_reader(self._pidfd, self._reap)
        self.streams = (Stream(ours[0], stdout), Stream(ours[1], stderr))

    async def wait(self, timeout_s: float | None) -> None:
        """Return at the end, at a `wake`, or after `timeout_s`: look which it was."""
        if self.exit is not None:
            return
        waiter = self._waiter = self._loop.create_future()
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, _resolve, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def ended(self) -> bool:
        return self.exit is not None

    def wake(self) -> None:
        if self._waiter is not None:
            _resolve(self._waiter)

    @property
    def held(self) -> list[Stream]:
        """The pipes that somebody has open, after the end too."""
        return [s for s in self.streams if not s.closed]

    def close_stdin(self) -> None:
        if self.stdin is not None:
            self._loop.remove_writer(self.stdin)
            os.close(self.stdin)
            self.stdin = None

    def _reap(self) -> None:
        _, status, usage = os.wait4(self.pid, 0)
        ended_ns = time.perf_counter_ns()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.close_stdin()
        for stream in self.streams:
            stream.take_rest()
        code = os.waitstatus_to_exitcode(status)
        self.exit = Exit(
            code=code if code >= 0 else 128 - code,
            duration_ns=ended_ns - self._started_ns,
            cpu_ns=round((usage.ru_utime + usage.ru_stime) * 1e9),
        )
        self.wake()


def _start(command: Command, stdin: int, stdout: int, stderr: int) -> int:
    try:
        with _bound(command.cpuset):
            process = subprocess.Popen(
                command.argv,
                cwd=command.cwd,
                env=command.env,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
                umask=0o022,
            )
    except OSError as error:
        raise _why(error, command) from error
    process.returncode = 0  # the pidfd is watched and reaped by us: Popen has done its part
    return process.pid


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


@contextlib.contextmanager
def _bound(cpuset: tuple[int, ...] | None) -> Iterator[None]:
    """A child inherits its processors: set on it afterwards, it may already have run elsewhere."""
    if cpuset is None:
        yield
        return
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpuset)
    try:
        yield
    finally:
        os.sched_setaffinity(0, ours)


def _stdin(data: bytes | None) -> tuple[int, int | None]:
    """The child's end, and ours if it is a pipe. Given data lie in memory: nobody has to feed them."""
    if data is None:
        end, ours = os.pipe()
        os.set_blocking(ours, False)
        return end, ours
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), None
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd, None


_OURS = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Not the command's fault: the host has no room for another process."""


def _why(error: OSError, command: Command) -> Exception:
    if error.errno in _OURS:
        return error
    text = os.strerror(error.errno or 0)
    if not os.path.isdir(command.cwd) or not os.access(command.cwd, os.X_OK):
        return NotStarted(Fault.MISSING_CWD, 126, f"{command.cwd}: {text}")
    missing = error.errno == errno.ENOENT
    fault = Fault.MISSING_PROGRAM if missing else Fault.NOT_EXECUTABLE
    return NotStarted(fault, 127 if missing else 126, f"{command.argv[0]}: {text}")


def _resolve(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _ignore(_: bytes) -> None:
    pass
