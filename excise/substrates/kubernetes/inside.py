"""Pods with an agent inside: placed once, and all actions over one exec that is kept open.

The cluster makes and removes pods as without an agent. Whoever made a pod holds the connection: when that process
dies the agent ends, and its pod sleeps on until it is swept. So a handle does not outlive the process that made it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from excise.agent.async_connection import AsyncConnection
from excise.agent.binary import agent_binary
from excise.agent.errors import AgentRefused
from excise.errors import LifecycleError, Phase, SandboxGone, SubstrateError
from excise.noting import ANSWERED, note
from excise.substrates.inside.habits import Habits
from excise.substrates.inside.inside import Inside
from excise.substrates.inside.surroundings import habits_of
from excise.substrates.inside.way import connect
from excise.substrates.kubernetes import channels, placing
from excise.substrates.kubernetes.actions import KILLED, OOM_FILES
from excise.substrates.kubernetes.cluster import Refused
from excise.substrates.kubernetes.execution import Running
from excise.substrates.kubernetes.options import Options
from excise.substrates.kubernetes.substrate import Kubernetes
from excise.types import Handle, Observation, Repo, Spec

_COMPLAINT_BYTES = 4096


class Line:
    """The websocket of one exec as a stream of bytes; what comes beside it is a complaint."""

    def __init__(self, running: Running) -> None:
        self.complaint = ""
        self._running = running
        self._socket = running.socket

    async def receive(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            channel, said = message.data[0] if message.data else channels.STDERR, message.data[1:]
            if channel == channels.STDOUT and said:
                return bytes(said)
            if channel == channels.STATUS:
                self._complain(channels.end_in(said)[1])
                return b""
            self._complain(said.decode("utf-8", "replace"))

    async def send(self, data: bytes) -> None:
        await self._running.send(data)

    async def close(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        self._running.release()

    def _complain(self, text: str) -> None:
        self.complaint = (self.complaint + text)[:_COMPLAINT_BYTES]


@dataclass(frozen=True, slots=True)
class _Resident:
    agent: AsyncConnection
    habits: Habits
    line: Line


@dataclass(eq=False, slots=True)
class _Lodging:
    """One pod of ours; nobody is resident before the agent has answered."""

    user: str | None
    resident: _Resident | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)


class KubernetesInside(Inside, Kubernetes):
    """`kubernetes+agent`."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._program = agent_binary()
        self._map: str | None = None
        self._lodgings: dict[Handle, _Lodging] = {}

    async def create(self, spec: Spec) -> Handle:
        if self._options.place == "volume":
            await self._publish()
        return await super().create(spec)

    async def resident(self, box: Handle, phase: Phase) -> _Resident:
        self._named(box, phase)
        lodging = self._lodgings.get(box)
        if lodging is None or lodging.resident is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if asyncio.get_running_loop() is not lodging.loop:
            raise LifecycleError(f"{box} was made in another event loop: use it in that one")
        return lodging.resident

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        lodging = self._lodgings.get(box)
        if lodging is None:
            why = f"{box} was destroyed"
        else:
            said = lodging.resident.line.complaint if lodging.resident else ""
            why = f"the connection to the agent of {box} has ended: {said.strip() or 'nobody said why'}"
        return SandboxGone(why, substrate=self.name, phase=phase)

    async def ran_out_of_memory(self, box: Handle, seen: Observation) -> bool:
        if seen.exit_code != KILLED or seen.timed_out:
            return False
        resident = await self.resident(box, Phase.RUN)
        said = b""
        for path in OOM_FILES:
            try:
                said += await resident.agent.read(path)
            except (OSError, AgentRefused):
                continue
        return self._actions.newly_killed(box, said.decode("utf-8", "replace"))

    async def destroy(self, box: Handle) -> None:
        lodging = self._lodgings.pop(box, None)
        try:
            await super().destroy(box)
        finally:
            if lodging is not None and lodging.resident is not None:
                lodging.resident.agent.abort()
                lodging.resident.line.hang_up()

    async def close(self) -> None:
        """End every sandbox of this object: none can be used without its connection."""
        for box in tuple(self._lodgings):
            await self.destroy(box)
        await super().close()

    async def describe(self) -> dict[str, str]:
        return {
            **await super().describe(),
            "agent": f"over one kept exec, placed by {self._options.place}",
        }

    def _body(self, box: Handle, spec: Spec, image: str) -> dict[str, Any]:
        self._lodgings[box] = _Lodging(spec.user)
        body = super()._body(box, spec, image)
        return body if self._map is None else placing.with_volume(body, self._map)

    async def _first_answer(self, box: Handle, phase: Phase) -> None:
        lodging = self._lodgings.get(box)
        if lodging is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if lodging.resident is None:
            line: Line = await self._tried(box, phase, lambda: self._open(box))
            await self._move_in(box, line, lodging, phase)
            note(ANSWERED)

    async def _open(self, box: Handle) -> Line:
        if self._map is not None:
            return Line(await Running.start(self._cluster, box, placing.by_volume(), stdin=True))
        command = placing.by_exec(self._program.stat().st_size)
        return Line(await Running.start(self._cluster, box, command, stdin=True))

    async def _move_in(self, box: Handle, line: Line, lodging: _Lodging, phase: Phase) -> None:
        if self._map is None:
            await line.send(await asyncio.to_thread(self._program.read_bytes))
            said = await line.receive()
            if said != placing.ARRIVED:
                await line.close()
                raise self._cluster.broken(
                    f"the agent could not be placed in {box}: {line.complaint.strip() or said!r}; "
                    "an image without sh and head needs place=volume",
                    phase,
                )
        agent = await connect(line)
        try:
            with self._told(box, phase):
                habits = await habits_of(agent, env={}, user=lodging.user)
        except BaseException:
            agent.abort()
            raise
        lodging.resident = _Resident(agent, habits, line)

    async def _publish(self) -> None:
        body = placing.config_map(self._program)
        if self._map is None:
            async with self._cluster.asking(Phase.CREATE) as cluster:
                try:
                    await cluster.call("POST", cluster.in_namespace("configmaps"), body)
                except Refused as error:
                    if error.status != 409:
                        raise
            self._map = body["metadata"]["name"]

    async def _upload(self, box: Handle, repo: Repo) -> None:
        await self.upload(box, Path(repo.source), repo.path)
