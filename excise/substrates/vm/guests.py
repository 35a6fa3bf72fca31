"""The verbs of the contract for guests of whatever machine: a place, a disk, a machine, and the agent in it."""

from __future__ import annotations

import asyncio
import os
import time
from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from excise.agent.async_connection import AsyncConnection
from excise.errors import (
    NO_ROOM,
    DeadlineExceeded,
    LifecycleError,
    Phase,
    SandboxGone,
    SubstrateError,
)
from excise.substrates.inside.habits import Habits
from excise.substrates.inside.inside import Inside
from excise.substrates.inside.surroundings import habits_of
from excise.substrates.vm.config import Options, Shape, shape_of
from excise.substrates.vm.disks import Disks
from excise.substrates.vm.machine import BootFailed, Machine
from excise.substrates.vm.places import Places
from excise.substrates.vm.qemu_line import NAMES
from excise.types import Handle, Isolation, Observation, Spec

KILLED = 137
SEED = "/run/excise/seed"
"""Where commands find random bytes that no other guest has, whatever it was copied from."""

_SEED_BYTES = 64
_VMSTAT = "/proc/vmstat"


@dataclass(frozen=True, slots=True)
class Resident:
    agent: AsyncConnection
    habits: Habits


@dataclass(eq=False, slots=True)
class Guest:
    """One sandbox and our hold on it; nobody is resident before the agent has answered."""

    spec: Spec
    shape: Shape
    place: Path
    machine: Machine
    resident: Resident | None = None
    has_repo: bool = False
    ooms: int = 0
    booting: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)


class Guests(Inside):
    """What all machines share. A handle does not outlive the process that made it: that holds the line."""

    isolation: Isolation = Isolation.VM

    def __init__(self, options: Options) -> None:
        self.name = options.name
        self._options = options
        self._disks = Disks(options.name)
        self._places = Places(self.name)
        self._guests: dict[Handle, Guest] = {}

    @abstractmethod
    async def _start(self, place: Path, spec: Spec, shape: Shape) -> Machine:
        """A machine in that place, with a disk of its own of the spec's image."""

    def _check(self, spec: Spec) -> Shape:
        """The hardware for this spec; InputError where this machine cannot have it."""
        return shape_of(spec, self.name, os.cpu_count() or 1)

    async def create(self, spec: Spec) -> Handle:
        shape = self._check(spec)
        box = self._places.new()
        try:
            place = self._places.make(box)
            try:
                machine = await self._start(place, spec, shape)
            except BaseException:
                await self._places.remove(place)
                raise
        except OSError as error:
            full = "; the disk is full" if error.errno in NO_ROOM else ""
            raise self._broken(f"cannot start a machine: {error}{full}", Phase.CREATE) from error
        self._guests[box] = Guest(spec, shape, place, machine)
        return box

    async def ready(self, box: Handle) -> None:
        await self.resident(box, Phase.READY)

    async def resident(self, box: Handle, phase: Phase) -> Resident:
        guest = self._guest(box, phase)
        if guest.resident is None:
            async with guest.booting:
                if guest.resident is None:
                    guest.resident = await self._boot(box, guest, phase)
        return guest.resident

    async def reset(self, box: Handle) -> None:
        """Boot it anew, from an untouched disk."""
        guest = self._guest(box, Phase.RESET)
        async with guest.booting:
            await self._end(guest)
            try:
                guest.place = self._places.make(box)
                guest.machine = await self._start(guest.place, guest.spec, guest.shape)
            except OSError as error:
                raise self._broken(f"cannot start a machine: {error}", Phase.RESET) from error
            guest.has_repo = False
            guest.ooms = 0
            guest.resident = await self._boot(box, guest, Phase.RESET)

    async def destroy(self, box: Handle) -> None:
        if not self._places.is_ours(box):
            raise self._not_mine(box, Phase.DESTROY)
        guest = self._guests.pop(box, None)
        if guest is None:
            return
        ending = asyncio.ensure_future(self._end(guest))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def sweep(self) -> int:
        """Remove the guests whose owner is certainly dead; most have ended by themselves."""
        swept = 0
        for place in self._places.orphans():
            if not await self._places.clear(place):
                raise self._broken(f"the machine in {place} would not end", Phase.DESTROY)
            swept += 1
        return swept

    async def has_image(self, reference: str) -> bool:
        return await self._disks.has(reference)

    async def import_image(self, reference: str, archive: Path) -> None:
        await self._disks.load(reference, archive)

    async def close(self) -> None:
        """End every guest of this object: none can be used without its line."""
        for box in tuple(self._guests):
            await self.destroy(box)

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        guest = self._guests.get(box)
        if guest is None:
            why = f"{box} was destroyed"
        else:
            why = f"{box} has ended: {guest.machine.complaint or 'its machine was killed'}"
        return SandboxGone(why, substrate=self.name, phase=phase)

    async def ran_out_of_memory(self, box: Handle, seen: Observation) -> bool:
        guest = self._guests.get(box)
        if guest is None or guest.resident is None:
            return False
        if seen.exit_code != KILLED or seen.timed_out:
            return False
        before, guest.ooms = guest.ooms, await _ooms(guest.resident.agent)
        return guest.ooms > before

    async def _stopped(self, place: Path, machine: Machine) -> None:
        """Return when the machine in that place has ended, and nothing of it is left but the place."""
        del place
        await machine.end()

    async def _boot(self, box: Handle, guest: Guest, phase: Phase) -> Resident:
        limit_s = self._options.boot_s
        try:
            async with asyncio.timeout(limit_s):
                agent = await guest.machine.agent()
        except TimeoutError as error:
            said = guest.machine.complaint or "nothing"
            text = f"the guest did not boot within {limit_s:g} s; its console says: {said}"
            raise DeadlineExceeded(text, substrate=self.name, phase=phase) from error
        except (BootFailed, OSError) as error:
            said = guest.machine.complaint or "nothing"
            raise self._broken(f"{error}; its console says: {said}", phase) from error
        with self._told(box, phase):
            return await self._settle(agent, guest)

    async def _settle(self, agent: AsyncConnection, guest: Guest) -> Resident:
        """From a guest that has booted to one as the spec wants it."""
        spec = guest.spec
        await thaw(agent)
        habits = await habits_of(agent, env=spec.env, user=spec.user)
        if guest.shape.network:
            await agent.write("/etc/resolv.conf", f"nameserver {NAMES}\n".encode())
        if spec.repo is not None and not guest.has_repo:
            target = f"{habits.workspace}/{spec.repo.path}"
            await agent.upload(Path(spec.repo.source), target)
        return Resident(agent, habits)

    async def _end(self, guest: Guest) -> None:
        if guest.resident is not None:
            guest.resident.agent.abort()
            guest.resident = None
        await self._stopped(guest.place, guest.machine)
        await self._places.remove(guest.place)

    def _guest(self, box: Handle, phase: Phase) -> Guest:
        if not self._places.is_ours(box):
            raise self._not_mine(box, phase)
        guest = self._guests.get(box)
        if guest is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if asyncio.get_running_loop() is not guest.loop:
            raise LifecycleError(f"{box} was made in another event loop: use it in that one")
        return guest

    def _not_mine(self, box: Handle, phase: Phase) -> SandboxGone:
        return SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)

    def _broken(self, message: str, phase: Phase) -> SubstrateError:
        return SubstrateError(message, substrate=self.name, phase=phase)


async def thaw(agent: AsyncConnection) -> None:
    """The host's time, and randomness that no other guest has: before anything runs in a guest, however it came to be."""
    await agent.thaw(time.time_ns(), os.urandom(_SEED_BYTES))
    await agent.write(SEED, f"{os.urandom(16).hex()}\n".encode(), parents=True)


async def _ooms(agent: AsyncConnection) -> int:
    rows = (await agent.read(_VMSTAT)).decode().splitlines()
    return next((int(row.split()[1]) for row in rows if row.startswith("oom_kill ")), 0)
