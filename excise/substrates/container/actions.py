"""Actions through the engine: one exec each, killed with all it started when time is up or nobody waits any more."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

from excise.errors import InputError, Phase, SandboxGone
from excise.substrates.capture import Capture
from excise.substrates.container import killing
from excise.substrates.container.config import fault_in, missing_user_in
from excise.substrates.container.engine import Engine
from excise.substrates.container.execution import Command, Ended, Running
from excise.substrates.container.files import absolute
from excise.substrates.ending import to_the_end
from excise.types import Action, Handle, Observation

KILLED = 137
OOM_NEWS_S = 1.0
"""The engine's event stream may bring the news of a kill so much later than the exec's end, on a busy host."""
OOM_LOOK_S = 0.02


class Actions:
    """Runs and kills commands in the containers of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run(self, box: Handle, action: Action, argv: tuple[str, ...]) -> Observation:
        token = secrets.token_hex(16)
        out, err = Capture(action.output_limit_bytes), Capture(action.output_limit_bytes)
        env = {**action.env, killing.MARK: token}
        command = Command(argv, absolute(action.cwd or "."), env, action.user, action.stdin)
        ooms = self._engine.ooms[box]
        running: Running | None = None
        try:
            async with asyncio.timeout(action.timeout_s):
                running = await Running.start(self._engine, box, command)
                running.read_into(out, err)
                ended = await running.ended(lambda: out.total_bytes + err.total_bytes)
        except TimeoutError:
            await to_the_end(self.kill(box, token, running))
            return _observation(KILLED, out, err, timed_out=True)
        except asyncio.CancelledError:
            await to_the_end(self.kill(box, token, running))
            raise
        finally:
            if running is not None:
                running.release()
        if not ended.started and self._refused(out, err):
            return self._not_started(ended, out, err)
        oom = ended.exit_code == KILLED and await self.news_of_oom(box, ooms)
        return _observation(ended.exit_code, out, err, oom=oom)

    async def news_of_oom(self, box: Handle, before: int) -> bool:
        """Whether the engine tells of a kill for memory that we have not heard of before."""
        for _ in range(round(OOM_NEWS_S / OOM_LOOK_S)):
            if self._engine.ooms[box] > before:
                return True
            await asyncio.sleep(OOM_LOOK_S)
        return self._engine.ooms[box] > before

    def _refused(self, out: Capture, err: Capture) -> bool:
        """Whether it was never started. Podman forgets the process ids: only the runtime's own words tell there."""
        if self._engine.substrate != "podman":
            return True
        text = out.kept[:4096] + err.kept[:4096]
        return (
            b"OCI runtime" in text
            or b"OCI permission" in text
            or missing_user_in(text.decode("utf-8", "replace")) is not None
        )

    def _not_started(self, ended: Ended, out: Capture, err: Capture) -> Observation:
        message = (out.kept + err.kept).decode("utf-8", "replace").strip()
        if (user := missing_user_in(message)) is not None:
            raise InputError(f"{self._engine.substrate}: {user}")
        if (fault := fault_in(message)) is None:
            raise self._engine.broken(
                f"a command did not start: {message or ended}", Phase.RUN, retryable=True
            )
        text = f"{message}\n".encode()
        return Observation(
            fault[1], stderr=text, fault=fault[0], stdout_bytes=0, stderr_bytes=len(text)
        )

    async def kill(self, box: Handle, token: str, running: Running | None) -> None:
        """Kill what carries the token; the whole container if that cannot be done from inside.

        Where the command has filled the table of processes, the runtime needs luck to get one in: it tries again.
        """
        with contextlib.suppress(SandboxGone):
            for attempt in range(5):
                command = Command(killing.argv(token), "/", {})
                code, said = await self._whole(box, command)
                if code != 0 and fault_in(said):
                    break
                look = {} if running is None else await running.look()
                if code == 0 and not look.get("Running"):
                    return
                await asyncio.sleep(0.05 * 2**attempt)
            async with self._engine.asking(Phase.RUN) as client:
                await client.containers.container(box).kill()

    async def _whole(self, box: Handle, command: Command) -> tuple[int, str]:
        """One command of ours to its end: its code and what it said."""
        said = Capture(4096)
        running = await Running.start(self._engine, box, command)
        try:
            running.read_into(said, said)
            ended = await running.ended(lambda: said.total_bytes)
        finally:
            running.release()
        return ended.exit_code, said.kept.decode("utf-8", "replace")


def _observation(
    code: int, out: Capture, err: Capture, *, timed_out: bool = False, oom: bool = False
) -> Observation:
    return Observation(
        exit_code=code,
        stdout=out.kept,
        stderr=err.kept,
        timed_out=timed_out,
        truncated=out.truncated or err.truncated,
        oom=oom,
        stdout_bytes=out.total_bytes,
        stderr_bytes=err.total_bytes,
    )
