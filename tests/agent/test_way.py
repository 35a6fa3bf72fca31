"""A stream of bytes that is no socket carries the agent's protocol as well as one."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from excise.agent.async_connection import AsyncConnection
from excise.agent.binary import agent_binary
from excise.agent.errors import AgentGone
from excise.agent.messages import Exec
from excise.substrates.inside.surroundings import habits_of
from excise.substrates.inside.way import connect

ENV = {"PATH": "/usr/bin:/bin"}


class Pipes:
    """The agent behind two pipes; `broken` makes what is sent fail, as a platform's client would."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.broken = False
        self.closed = 0

    async def receive(self) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.read(1 << 16)

    async def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        if self.broken:
            raise OSError("the platform let go")
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.closed += 1
        self.process.stdin.close()
        await self.process.wait()


def with_agent(work: Callable[[AsyncConnection, Pipes], Awaitable[None]]) -> Pipes:
    async def all_of_it() -> Pipes:
        process = await asyncio.create_subprocess_exec(
            agent_binary(), "agent", "--stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**ENV, "HOME": "/nowhere", "GIVEN": "by the platform"},
        )  # fmt: skip
        pipes = Pipes(process)
        agent = await connect(pipes)
        try:
            await work(agent, pipes)
        finally:
            await agent.close()
        return pipes

    return asyncio.run(all_of_it())


def test_megabytes_go_both_ways() -> None:
    data = bytes(range(256)) * (5 << 12)

    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        found = await agent.run(Exec(("cat",), env=ENV, stdin=data))
        assert found.stdout == data

    assert with_agent(work).closed == 1


def test_many_actions_share_it() -> None:
    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        asked = [agent.run(Exec(("echo", str(n)), env=ENV)) for n in range(40)]
        answers = await asyncio.gather(*asked)
        assert [answer.stdout for answer in answers] == [b"%d\n" % n for n in range(40)]

    with_agent(work)


def test_an_agent_that_ends_is_gone_for_whoever_waits() -> None:
    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        running = asyncio.ensure_future(agent.run(Exec(("sleep", "300"), env=ENV)))
        await agent.ping()
        pipes.process.kill()
        with pytest.raises(AgentGone):
            await running

    assert with_agent(work).closed == 1


def test_a_platform_that_lets_go_is_an_agent_that_is_gone() -> None:
    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        pipes.broken = True
        with pytest.raises(AgentGone, match="the platform let go"):
            await agent.ping()

    assert with_agent(work).closed == 1


def test_whoever_lets_go_at_once_waits_for_nothing() -> None:
    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        agent.abort()
        with pytest.raises(AgentGone):
            await agent.ping()

    assert with_agent(work).closed == 1


def test_commands_get_what_the_platform_gives_and_their_own_home(tmp_path) -> None:
    async def work(agent: AsyncConnection, pipes: Pipes) -> None:
        workspace = str(tmp_path / "work")
        habits = await habits_of(agent, env={"MORE": "x"}, workspace=workspace)
        assert habits.env == {**ENV, "GIVEN": "by the platform", "MORE": "x"}
        found = await agent.run(Exec(("pwd",), env=habits.packed, cwd=habits.workspace))
        assert found.stdout.decode() == f"{workspace}\n"
        kept = await habits_of(agent, env={}, workspace=workspace, without=())
        assert kept.env["HOME"] == "/nowhere"

    with_agent(work)
