"""Commands under way and persistent shells behind an agent, as the contract has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager

from excise.agent.async_running import AsyncRunning, AsyncShell
from excise.agent.errors import AgentRefused
from excise.agent.observation import observation_of
from excise.errors import SandboxGone
from excise.types import Observation

Told = Callable[[], AbstractContextManager[None]]
"""Raises what the agent's errors mean for the sandbox."""
After = Callable[[], Awaitable[None]]


class AgentStream:
    """A command whose output comes as it is written."""

    def __init__(self, running: AsyncRunning, told: Told, after: After | None = None) -> None:
        self._running = running
        self._told = told
        self._after = after

    async def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        with self._told():
            async for output in self._running:
                yield output.stream, output.data

    async def write(self, data: bytes) -> None:
        with self._told():
            await self._running.write(data)

    async def end_of_input(self) -> None:
        with self._told():
            await self._running.end_of_input()

    async def signal(self, number: int) -> None:
        with self._told():
            await self._running.signal(number)

    async def resize(self, rows: int, columns: int) -> None:
        with self._told():
            await self._running.resize(rows, columns)

    async def wait(self) -> Observation:
        with self._told():
            return observation_of(await self._running.result())

    async def close(self) -> None:
        with self._told():
            await self._running.close()
            if self._after is not None:
                await self._after()


class AgentShell:
    """One bash that stays. When it has ended, every further script raises SandboxGone."""

    def __init__(self, shell: AsyncShell, told: Told, gone: Callable[[str], SandboxGone]) -> None:
        self._shell = shell
        self._told = told
        self._gone = gone
        self._over = False

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        if self._over:
            raise self._gone("the shell has ended; open another")
        with self._told():
            try:
                result = await self._shell.run(script, timeout_s=timeout_s)
            except AgentRefused as error:
                self._over = True
                raise self._gone(f"the shell has ended; open another ({error})") from error
        return observation_of(result)

    async def close(self) -> None:
        if not self._over:
            self._over = True
            with self._told():
                await self._shell.close()
