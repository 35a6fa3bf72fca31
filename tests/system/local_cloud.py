"""A cloud of this host: a control plane that does as it is told, whose machines are guests that really boot."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from excise.errors import Phase
from excise.substrates.registry import open_substrate
from excise.substrates.vm.cloud.control import Look, Owned, State, Unknown
from excise.substrates.vm.qemu import Qemu
from excise.types import MIB, Action, Egress, Handle, Limits, Spec

SERVER = Action(("dropbear", "-F", "-E", "-R", "-p", "22"))
SMALL = Limits(memory_bytes=256 * MIB)


@dataclass
class Scripted:
    """Answers with what was put down for a verb, in order, before it does what it should: exceptions are raised."""

    name: str = "scripted"
    script: dict[str, list[object]] = field(default_factory=lambda: defaultdict(list))
    machines: dict[str, Mapping[str, str]] = field(default_factory=dict)
    address: str | None = None
    port: int = 22
    gate: asyncio.Event | None = None
    """Creations wait for it, if there is one, after they have made something."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """A machine has been made."""

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        self.next("create")
        self.machines[name] = labels
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        return name

    async def look(self, machine: str) -> Look:
        said = self.next("look")
        if isinstance(said, Look):
            return said
        if machine not in self.machines:
            raise Unknown(machine)
        return Look(State.RUNNING, self.address, self.port)

    async def delete(self, machine: str) -> None:
        self.next("delete")
        self.machines.pop(machine, None)

    async def owned(self) -> Sequence[Owned]:
        return [Owned(name, labels) for name, labels in self.machines.items()]

    async def close(self) -> None:
        """Nothing is kept."""

    def next(self, verb: str) -> object:
        said = self.script[verb].pop(0) if self.script[verb] else None
        if isinstance(said, Exception):
            raise said
        return said


def _qemu() -> Qemu:
    found = open_substrate("vm")
    assert isinstance(found, Qemu)
    return found


@dataclass
class LocalCloud(Scripted):
    """One machine at a time. It boots at once; its port, its server and its keys come when they are asked for."""

    name: str = "local"
    image: str = ""
    guest: Handle | None = None
    guests: Qemu = field(default_factory=_qemu)

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        made = await super().create(name, labels)
        spec = Spec(image=self.image, egress=Egress.FULL, limits=SMALL)
        self.guest = await self.guests.create(spec)
        return made

    async def delete(self, machine: str) -> None:
        await super().delete(machine)
        await self.vanish()

    async def close(self) -> None:
        await self.guests.close()

    async def vanish(self) -> None:
        """As a machine does whose host has died."""
        if self.guest is not None:
            await self.guests.destroy(self.guest)
            self.guest = None

    async def open_port(self) -> None:
        """Somebody listens for the machine, though nobody is behind it yet."""
        guest = await self._booted()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        monitor = self.guests._running[self.guests._guests[guest].place].monitor
        line = f"hostfwd_add tcp:127.0.0.1:{self.port}-:22"
        await monitor.call("human-monitor-command", **{"command-line": line})
        self.address = "127.0.0.1"

    async def start_server(self) -> None:
        guest = await self._booted()
        await self.guests.write(guest, "/etc/shells", b"/bin/bash\n")
        await self.guests.make_directory(guest, "/etc/dropbear")
        await self.guests.start(guest, SERVER)

    async def let_in(self, key: bytes) -> None:
        guest = await self._booted()
        with contextlib.suppress(FileExistsError):
            await self.guests.make_directory(guest, "/root/.ssh", mode=0o700)
        await self.guests.write(guest, "/root/.ssh/authorized_keys", key)

    async def _booted(self) -> Handle:
        assert self.guest is not None
        await self.guests.resident(self.guest, Phase.READY)
        return self.guest
