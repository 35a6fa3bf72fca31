"""Every verb and ability that needs nothing but an agent in the sandbox, whoever made that sandbox."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from excise.agent.observation import observation_of
from excise.errors import Phase, SandboxGone, SubstrateError
from excise.substrates.base import Background, Shell, Stream, Terminal
from excise.substrates.inside.habits import exec_of
from excise.substrates.inside.long_scripts import lay, lift
from excise.substrates.inside.streams import AgentShell, AgentStream
from excise.substrates.inside.told import told
from excise.substrates.inside.tree import InsideTree
from excise.substrates.script import check
from excise.types import Action, Handle, Observation


class Inside(InsideTree):
    """Mix it in before the substrate that makes the sandboxes, and say how an agent is found in one.

    `class DockerInside(Inside, Docker)` keeps the verbs that are about sandboxes; what is about commands and
    files goes over the kept connection. The agent times commands, kills whole trees, and needs of the image
    neither a shell nor a libc.
    """

    name: str
    times_inside = True

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        """What it means that the connection to the agent of `box` has ended."""
        return SandboxGone(f"the agent of {box} is gone", substrate=self.name, phase=phase)

    async def ran_out_of_memory(self, box: Handle, seen: Observation) -> bool:
        """Whether a command that ended so was killed for want of memory. The kernel does not tell an agent."""
        del box, seen
        return False

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            action, script = await lay(resident.agent, action)
            what = exec_of(action, resident.habits, one_shot=True)
            try:
                result = await resident.agent.run(what)
            finally:
                await lift(resident.agent, script)
        seen = observation_of(result, user=what.user)
        if seen.ok or not await self.ran_out_of_memory(box, seen):
            return seen
        return replace(seen, oom=True)

    async def stream(
        self,
        box: Handle,
        action: Action,
        *,
        terminal: Terminal | None = None,
        input_open: bool = True,
    ) -> Stream:
        check(action.argv)
        resident = await self.resident(box, Phase.RUN)
        stdin_open = (input_open or terminal is not None) and not action.stdin
        with self._told(box):
            action, script = await lay(resident.agent, action)
            what = exec_of(action, resident.habits, one_shot=not stdin_open)
            if terminal is not None:
                what = replace(what, pty=True, rows=terminal.rows, columns=terminal.columns)
            running = await resident.agent.start(what, stdin_open=stdin_open)
        return AgentStream(running, lambda: self._told(box), lambda: lift(resident.agent, script))

    async def start(self, box: Handle, action: Action) -> int:
        check(action.argv)
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            return await resident.agent.background(exec_of(action, resident.habits))

    async def started(self, box: Handle) -> list[Background]:
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            found = await resident.agent.actions()
        return [Background(each.id, each.words, running=not each.ended) for each in found]

    async def attach(self, box: Handle, number: int) -> Stream:
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            running = await resident.agent.attach(number)
        return AgentStream(running, lambda: self._told(box))

    async def signal(self, box: Handle, number: int, signal: int) -> None:
        """To everything that the action started."""
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            await resident.agent.signal(number, signal)

    async def open_shell(self, box: Handle) -> Shell:
        resident = await self.resident(box, Phase.RUN)
        habits = resident.habits
        with self._told(box):
            shell = await resident.agent.open_shell(
                cwd=habits.workspace, env=habits.packed, user=habits.user
            )
        return AgentShell(shell, lambda: self._told(box), self._gone)

    def _told(self, box: Handle, phase: Phase = Phase.RUN) -> AbstractContextManager[None]:
        return told(self.name, box, phase, lambda: self.lost(box, phase))

    def _gone(self, message: str) -> SandboxGone:
        return SandboxGone(message, substrate=self.name, phase=Phase.RUN)
