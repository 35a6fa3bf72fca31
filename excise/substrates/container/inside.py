"""Containers with an agent inside: it is their main process, and all actions go over its standard streams.

The engine makes and removes containers, as without an agent; its exec is not used. An image needs neither a
shell nor a libc nor even `sleep`. Whoever made a container holds its input: when that process dies, the agent
ends, and the container with it. So a handle does not outlive the process that made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiodocker
from aiodocker.containers import DockerContainer

from excise.agent.async_connection import AsyncConnection
from excise.agent.binary import agent_binary
from excise.errors import InputError, LifecycleError, Phase, SandboxGone, SubstrateError
from excise.substrates.container import placing
from excise.substrates.container.actions import KILLED
from excise.substrates.container.attached import Attached
from excise.substrates.container.config import Options
from excise.substrates.container.substrate import Container
from excise.substrates.inside.habits import Habits
from excise.substrates.inside.inside import Inside
from excise.substrates.inside.surroundings import habits_of
from excise.types import Handle, Isolation, Observation, Repo


@dataclass(frozen=True, slots=True)
class _Resident:
    agent: AsyncConnection
    habits: Habits


@dataclass(eq=False, slots=True)
class _Lodging:
    """One container and our hold on it; nobody is resident before the agent has answered."""

    attached: Attached
    user: str
    has_home: bool
    """Whether the image says what HOME is, for whoever."""
    resident: _Resident | None = None
    ooms: int = 0
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)


class ContainerInside(Inside, Container):
    """`docker+agent`, `podman+agent`, `gvisor+agent`."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._program = agent_binary()
        self._mounts: bool | None = {"mount": True, "copy": False}.get(options.place)
        self._lodgings: dict[Handle, _Lodging] = {}
        self._users: dict[str, str] = {}

    async def ready(self, box: Handle) -> None:
        await self.resident(box, Phase.READY)

    async def resident(self, box: Handle, phase: Phase) -> _Resident:
        self._named(box, phase)
        lodging = self._lodgings.get(box)
        if lodging is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if asyncio.get_running_loop() is not lodging.loop:
            raise LifecycleError(f"{box} was made in another event loop: use it in that one")
        if lodging.resident is None:
            agent = lodging.attached.agent
            with self._told(box, phase):
                habits = await habits_of(
                    agent,
                    env={},
                    user=lodging.user,
                    without=() if lodging.has_home else ("HOME",),
                )
            lodging.resident = _Resident(agent, habits)
        return lodging.resident

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        lodging = self._lodgings.get(box)
        if lodging is None:
            why = f"{box} was destroyed"
        elif self._engine.ooms[box] > lodging.ooms:
            why = f"{box} ran out of memory and was ended as a whole"
        else:
            why = f"{box} has ended: {lodging.attached.complaint or 'its agent is gone'}"
        return SandboxGone(why, substrate=self.name, phase=phase)

    async def ran_out_of_memory(self, box: Handle, seen: Observation) -> bool:
        lodging = self._lodgings.get(box)
        if lodging is None:
            return False
        if seen.exit_code == KILLED and not seen.timed_out:
            await self._actions.news_of_oom(box, lodging.ooms)
        before, lodging.ooms = lodging.ooms, self._engine.ooms[box]
        return lodging.ooms > before

    async def destroy(self, box: Handle) -> None:
        lodging = self._lodgings.pop(box, None)
        try:
            await super().destroy(box)
        finally:
            if (
                lodging is not None
            ):  # not before: an engine stumbles over a container that ends meanwhile
                lodging.attached.end()

    async def close(self) -> None:
        """End every sandbox of this object: none can be used without its connection."""
        for box in tuple(self._lodgings):
            await self.destroy(box)
        await super().close()

    async def describe(self) -> dict[str, str]:
        way = {True: "mounted", False: "copied into a volume", None: "not placed yet"}
        return {**await super().describe(), "agent": f"main process, {way[self._mounts]}"}

    async def _new(
        self, client: aiodocker.Docker, box: Handle, config: Mapping[str, Any]
    ) -> DockerContainer:
        container = await self._placed(client, box, config)
        attached = await Attached.to(container)
        lodging = _Lodging(attached, str(config["User"]), has_home=_says_home(attached.config))
        self._lodgings[box] = lodging
        if not lodging.user:
            lodging.user = await self._user_of(client, str(attached.config["Image"]))
        return container

    async def _placed(
        self, client: aiodocker.Docker, box: Handle, config: Mapping[str, Any]
    ) -> DockerContainer:
        """A container with the agent's program in it."""
        if self._mounts is None:
            self._mounts = client.docker_host.startswith("unix://")
        if self._mounts:
            wanted = placing.with_agent(config, placing.mounted(self._program))
            try:
                return await super()._new(client, box, wanted)
            except aiodocker.DockerError as error:
                if not placing.is_unseen(error.message, self._program):
                    raise
                if self._options.place == "mount":
                    text = f"{self.name}: the engine does not see {self._program}: use place=copy"
                    raise InputError(text) from error
                self._mounts = False
        wanted = placing.with_agent(config, placing.volume())
        container = await super()._new(client, box, wanted)
        await container.put_archive(  # type: ignore[no-untyped-call]
            placing.FOLDER, placing.archive(self._program)
        )
        return container

    async def _user_of(self, client: aiodocker.Docker, image: str) -> str:
        """Whoever commands are in this image if nobody says; an image of this id never changes."""
        if image not in self._users:
            found = await client.images.inspect(image)
            self._users[image] = str((found.get("Config") or {}).get("User") or "")
        return self._users[image]

    async def _upload(self, box: Handle, repo: Repo) -> None:
        """The engine writes into no read-only root, whatever is mounted there, and not behind a runtime's back."""
        if self._options.root == "writable" and self.isolation is Isolation.CONTAINER:
            await super()._upload(box, repo)
        else:
            await self.upload(box, Path(repo.source), repo.path)


def _says_home(container: Mapping[str, Any]) -> bool:
    return any(entry.startswith("HOME=") for entry in container["Config"].get("Env") or ())
