"""A persistent bash as a bare process: the pipes for the framing in `shell`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping

from excise.errors import Phase, SandboxGone, SubstrateError
from excise.substrates.ending import to_the_end
from excise.substrates.local.process import Child, Command
from excise.substrates.local.proctree import kill_all
from excise.substrates.shell import ARGV, OPENING, Exchange, Frame
from excise.types import MIB, Observation

OUTPUT_LIMIT_BYTES = 64 * MIB
_GRACE_S = 1.0


class LocalShell:
    """One bash that stays. When it has ended, every further script raises SandboxGone."""

    def __init__(
        self,
        substrate: str,
        cwd: str,
        env: Mapping[str, str],
        cpuset: tuple[int, ...] | None,
        mark: bytes,
        argv: tuple[str, ...] = ARGV,
    ) -> None:
        self._substrate = substrate
        self._mark = mark
        self._frames: tuple[Frame, Frame] | None = None
        command = Command(argv, cwd, env, stdin=None, cpuset=cpuset)
        self._child = Child(command, lambda data: self._take(0, data), lambda d: self._take(1, d))
        self._unsent = bytearray(OPENING)
        self._send()

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        if self._child.exit is not None:
            raise SandboxGone(
                f"the shell has ended with {self._child.exit.code}; open another",
                substrate=self._substrate,
                phase=Phase.RUN,
            )
        exchange = Exchange.of(script)
        out, err = (Frame(exchange.mark, OUTPUT_LIMIT_BYTES) for _ in range(2))
        self._frames = (out, err)
        started_ns = time.perf_counter_ns()
        self._unsent += exchange.request
        self._send()
        try:
            timed_out = not await self._answered(out, err, timeout_s)
        except BaseException:
            await to_the_end(self._kill())
            raise
        finally:
            self._frames = None
        inside_ns = time.perf_counter_ns() - started_ns
        if timed_out:
            await to_the_end(self._kill())
        return _observation(out, err, self._code(out), timed_out, inside_ns)

    async def close(self) -> None:
        """End the shell as an end of its input would; kill it if it does not listen."""
        if not self._child.ended():
            self._child.close_stdin()
            await self._child.wait(_GRACE_S)
        if not self._child.ended():
            await self._kill()
        for stream in self._child.held:
            stream.close()

    def _code(self, out: Frame) -> int:
        if out.value is not None:
            return int(out.value)
        out.end()
        return self._child.exit.code if self._child.exit is not None else 137

    async def _answered(self, out: Frame, err: Frame, timeout_s: float | None) -> bool:
        """True when both streams showed the mark or the shell has ended; False when time was up."""
        loop = asyncio.get_running_loop()
        until = None if timeout_s is None else loop.time() + timeout_s
        while not (out.done and err.done) and not self._child.ended():
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                return False
            await self._child.wait(left)
        return True

    def _take(self, which: int, data: bytes) -> None:
        """Output that comes between two scripts, from something in the background, belongs to none."""
        if self._frames is not None:
            frame = self._frames[which]
            if not frame.done:
                frame.feed(data)
            if all(f.done for f in self._frames):
                self._child.wake()

    def _send(self) -> None:
        fd = self._child.stdin
        if fd is None:
            return
        loop = asyncio.get_running_loop()
        try:
            del self._unsent[: os.write(fd, self._unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent.clear()
        if self._unsent:
            loop.add_writer(fd, self._send)
        else:
            loop.remove_writer(fd)

    async def _kill(self) -> None:
        dead = await kill_all(self._mark, None if self._child.exit else self._child.pid)
        await self._child.wait(_GRACE_S)
        for stream in self._child.held:
            stream.close()
        if not dead:
            text = "the shell's processes would not die"
            raise SubstrateError(text, substrate=self._substrate, phase=Phase.RUN)


def _observation(out: Frame, err: Frame, code: int, timed_out: bool, inside_ns: int) -> Observation:
    if not err.done:
        err.end()
    return Observation(
        exit_code=code,
        stdout=out.output.kept,
        stderr=err.output.kept,
        timed_out=timed_out,
        truncated=out.output.truncated or err.output.truncated,
        inside_ns=inside_ns,
        stdout_bytes=out.output.total_bytes,
        stderr_bytes=err.output.total_bytes,
    )
