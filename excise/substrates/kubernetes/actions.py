"""Actions by exec: one websocket each, killed with all they started when time is up or nobody waits any more."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Callable

from excise.errors import InputError, Phase, SandboxGone, SubstrateError
from excise.substrates.capture import Capture
from excise.substrates.container import killing
from excise.substrates.container.files import absolute
from excise.substrates.ending import to_the_end
from excise.substrates.kubernetes import wrapping
from excise.substrates.kubernetes.cluster import Cluster, NotRunning
from excise.substrates.kubernetes.execution import Ended, Running
from excise.substrates.shell import ARGV, Frame
from excise.types import Action, Observation

KILLED = 137
OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_OOM_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class Actions:
    """Runs and kills commands in the pods of one cluster."""

    def __init__(self, cluster: Cluster, gone: Callable[[str], SandboxGone]) -> None:
        self._cluster = cluster
        self._gone = gone
        self._ooms: dict[str, int] = {}

    async def run(self, box: str, action: Action, argv: tuple[str, ...]) -> Observation:
        if action.user is not None:
            raise InputError(
                f"{self._cluster.substrate}: exec runs commands as the pod's user: "
                "say it in Spec.user, or take kubernetes+agent"
            )
        token, mark = secrets.token_hex(16), secrets.token_hex(16)
        out, err = _framed(mark, action), _framed(mark, action)
        command = wrapping.wrapped(
            argv,
            cwd=absolute(action.cwd or "."),
            env={**action.env, killing.MARK: token},
            mark=mark,
            stdin_bytes=len(action.stdin) or None,
        )
        running: Running | None = None
        try:
            async with asyncio.timeout(action.timeout_s):
                running = await Running.start(self._cluster, box, command, stdin=bool(action.stdin))
                running.read_into(out, err, lambda: out.frame.done and err.frame.done)
                if action.stdin:
                    running.feed(action.stdin)
                ended = await running.ended()
        except TimeoutError:
            await to_the_end(self.kill(box, token))
            return _observation(KILLED, out, err, timed_out=True)
        except asyncio.CancelledError:
            await to_the_end(self.kill(box, token))
            raise
        finally:
            if running is not None:
                running.release()
        return await self._seen(box, ended, out, err, mark)

    async def _seen(
        self, box: str, ended: Ended, out: _Framed, err: _Framed, mark: str
    ) -> Observation:
        value = out.frame.value
        code = int(value) if value else ended.code
        if code is None:
            raise self._cluster.broken(f"{box}: {ended.said}", Phase.RUN, retryable=True)
        fault = wrapping.fault_in(code, err.frame.output.kept, mark)
        if fault is not None:
            text = wrapping.readable(err.frame.output.kept, mark)
            return Observation(
                code, stderr=text, fault=fault, stdout_bytes=0, stderr_bytes=len(text)
            )
        oom = code == KILLED and await self._ran_out_of_memory(box)
        return _observation(code, out, err, oom=oom)

    async def _ran_out_of_memory(self, box: str) -> bool:
        """Whether the kernel has counted another kill for want of memory: Kubernetes tells only of a whole pod's."""
        script = f"cat {' '.join(OOM_FILES)} 2>/dev/null"
        with contextlib.suppress(SubstrateError):
            _, said = await self.whole(box, ("sh", "-c", script))
            return self.newly_killed(box, said)
        return False

    def newly_killed(self, box: str, said: str) -> bool:
        """Whether the kernel's words tell of a kill that nobody has heard of."""
        kills = sum(map(int, _OOM_KILLS.findall(said)))
        before, self._ooms[box] = self._ooms.get(box, 0), kills
        return kills > before

    def forget(self, box: str) -> None:
        self._ooms.pop(box, None)

    async def open(self, box: str, token: str) -> Running:
        """A bash whose input stays open."""
        env = wrapping.exports({killing.MARK: token})
        command = ("sh", "-c", f"{env}cd {absolute('.')} && exec {' '.join(ARGV)}")
        return await Running.start(self._cluster, box, command, stdin=True)

    async def kill(self, box: str, token: str) -> None:
        """Kill what carries the token; the whole pod if that cannot be done from inside."""
        with contextlib.suppress(SandboxGone, NotRunning):
            for attempt in range(5):
                code, _ = await self.whole(box, killing.argv(token))
                if code == 0:
                    return
                await asyncio.sleep(0.05 * 2**attempt)
            async with self._cluster.asking(Phase.RUN) as cluster:
                await cluster.call(
                    "DELETE", cluster.in_namespace("pods", box), {"gracePeriodSeconds": 0}
                )

    async def whole(self, box: str, argv: tuple[str, ...]) -> tuple[int | None, str]:
        """One command of ours to its end: its code and what it said."""
        said = Capture(4096)
        running = await Running.start(self._cluster, box, argv)
        try:
            running.read_into(said, said)
            ended = await running.ended()
        finally:
            running.release()
        return ended.code, said.kept.decode("utf-8", "replace") + ended.said


class _Framed:
    """One stream of a command up to its mark; what a child in the background prints after that is nobody's."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def add(self, data: bytes) -> None:
        if not self.frame.done:
            self.frame.feed(data)


def _framed(mark: str, action: Action) -> _Framed:
    return _Framed(Frame(b"\x1e" + mark.encode() + b":", action.output_limit_bytes))


def _observation(
    code: int, out: _Framed, err: _Framed, *, timed_out: bool = False, oom: bool = False
) -> Observation:
    for each in (out, err):
        if not each.frame.done:
            each.frame.end()
    one, two = out.frame.output, err.frame.output
    return Observation(
        exit_code=code,
        stdout=one.kept,
        stderr=two.kept,
        timed_out=timed_out,
        truncated=one.truncated or two.truncated,
        oom=oom,
        stdout_bytes=one.total_bytes,
        stderr_bytes=two.total_bytes,
    )
