"""B and H: a spawn from C without any output to take, and a spawn from Python with all of it captured."""

from __future__ import annotations

import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

TRUE = ("/bin/true",)
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


class Baseline:
    """The compiled baseline, as a process that answers a byte with the nanoseconds of one spawn and wait."""

    def __init__(self, argv: Sequence[str] = TRUE, *, within: Sequence[str] = ()) -> None:
        self._folder = tempfile.mkdtemp(prefix="excise-bench-")
        self.program = str(Path(self._folder, "baseline"))
        source = Path(__file__).with_name("baseline.c")
        subprocess.run(["cc", "-O2", "-o", self.program, source], check=True)
        self._process = subprocess.Popen(
            [*within, self.program, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**ENV, **{key: os.environ[key] for key in ("DOCKER_HOST",) if key in os.environ}},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder)

    def spawn_ns(self) -> int:
        """One posix_spawn and wait, timed where it happens."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(b"!")
        data = pipe_out.read(8)
        if len(data or b"") != 8:
            sys.exit("the baseline ended: is its program there?")
        return int(struct.unpack("<Q", data)[0])

    def loops(self, argv: Sequence[str], number: int, seconds: float) -> float:
        """Spawns per second of `number` processes that do nothing else."""
        command = [self.program, "--for", str(int(seconds * 1000)), *argv]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, env=ENV) for _ in range(number)
        ]
        return sum(int(each.communicate()[0]) for each in running) / seconds


def capture(argv: tuple[str, ...]) -> tuple[int, bytes, bytes]:
    """The least a Python program on the host must do to have a command's exit code and both its outputs."""
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    err_r, err_w = os.pipe2(os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, out_w, 1), (os.POSIX_SPAWN_DUP2, err_w, 2)]
    pid = os.posix_spawn(argv[0], argv, ENV, file_actions=actions)
    os.close(out_w)
    os.close(err_w)
    said = {out_r: b"", err_r: b""}
    poll = select.poll()
    for fd in said:
        poll.register(fd, select.POLLIN)
    left = 2
    while left:
        for fd, _ in poll.poll():
            data = os.read(fd, 65536)
            said[fd] += data
            if not data:
                poll.unregister(fd)
                left -= 1
    os.close(out_r)
    os.close(err_r)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), said[out_r], said[err_r]
