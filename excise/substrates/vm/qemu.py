"""`vm`: a machine of its own by QEMU, with a stock kernel; accelerated where a guest really boots so, else emulated.

A guest can be frozen and copied: its memory, whatever is in it, is shared by all copies until they write to it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from excise.errors import InputError, Phase, SubstrateError
from excise.substrates.vm.config import Options, Shape
from excise.substrates.vm.frozen import Frozen, Hardware, bring_back, freeze, new_memory
from excise.substrates.vm.guests import Guest, Guests
from excise.substrates.vm.hypervisor import Hypervisor, Running, stop
from excise.substrates.vm.machine import BootFailed, Machine
from excise.substrates.vm.qemu_line import COW, GATEWAY
from excise.substrates.vm.qmp import QmpError
from excise.types import Handle, Spec

FROZEN = "frozen:"
"""How references of snapshots begin."""


class Qemu(Guests):
    """Boots guests, or makes them of one that was frozen as soon as it had booted (`start=fork`)."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._hypervisor = Hypervisor(options, self._places)
        self._running: dict[Path, Running] = {}
        self._booted: dict[tuple[Path, Shape], Frozen] = {}
        self._kept: dict[str, Frozen] = {}
        self._booting = asyncio.Lock()

    async def host_address(self) -> str:
        """This host's loopback, as a guest with egress sees it."""
        return GATEWAY

    async def describe(self) -> dict[str, str]:
        verdict = await self._hypervisor.verdict()
        parts = self._hypervisor.parts
        version = await asyncio.to_thread(_version_of, parts.program)
        return {
            "machine": f"{version}, q35",
            "kernel": parts.kernel.name,
            "acceleration": f"{verdict.accel}: {verdict.why}",
            "emulated": "yes" if verdict.emulated else "no",
            "start": self._options.start,
            "user": "nobody" if os.geteuid() == 0 else "the caller",
            "agent": "first process, over virtio-serial",
            "root": "ext4 on a copy-on-write disk",
        }

    async def reset(self, box: Handle) -> None:
        """Begin again from a guest of the same hardware that had just booted; there is one after the first time."""
        guest = self._guest(box, Phase.RESET)
        async with guest.booting, self._translated(Phase.RESET):
            frozen = await self._just_booted(guest.spec, guest.shape)
            await self._begin_again(box, guest, frozen, as_copy=False)

    async def fork(self, box: Handle, copies: int = 1) -> list[Handle]:
        guest = self._guest(box, Phase.RESET)
        async with guest.booting, self._translated(Phase.RESET):
            frozen = await self._freeze(box, guest)
            try:
                made = await asyncio.gather(
                    *(self._copy(guest.spec, frozen) for _ in range(copies)), return_exceptions=True
                )
            finally:
                frozen.close()
        failed = [one for one in made if isinstance(one, BaseException)]
        boxes = [one for one in made if not isinstance(one, BaseException)]
        if failed:
            for each in boxes:
                await self.destroy(each)
            raise failed[0]
        return boxes

    async def snapshot(self, box: Handle) -> str:
        guest = self._guest(box, Phase.RESET)
        async with guest.booting, self._translated(Phase.RESET):
            frozen = await self._freeze(box, guest)
        reference = f"{FROZEN}{secrets.token_hex(8)}"
        self._kept[reference] = frozen
        return reference

    async def forget(self, reference: str) -> None:
        frozen = self._kept.pop(reference, None)
        if frozen is not None:
            frozen.close()

    async def close(self) -> None:
        await super().close()
        for frozen in (*self._kept.values(), *self._booted.values()):
            frozen.close()
        self._kept.clear()
        self._booted.clear()
        self._hypervisor.close()

    async def _start(self, place: Path, spec: Spec, shape: Shape) -> Machine:
        async with self._translated(Phase.CREATE):
            if spec.image.startswith(FROZEN):
                return await self._restore(place, self._snapshot_for(spec, shape))
            if self._options.start == "fork":
                return await self._restore(place, await self._just_booted(spec, shape))
            return await self._cold(place, spec, shape)

    async def _cold(self, place: Path, spec: Spec, shape: Shape) -> Machine:
        disk = await self._disks.of(spec.image, shape.disk_bytes)
        base = await asyncio.to_thread(os.open, disk, os.O_RDONLY | os.O_CLOEXEC)
        return await self._run(place, Hardware(shape, (base,), new_memory()))

    async def _restore(self, place: Path, frozen: Frozen, *, own_memory: bool = False) -> Machine:
        hardware = await frozen.hardware(own_memory=own_memory)
        machine = await self._run(place, hardware, incoming=True)
        try:
            await bring_back(self._running[place].monitor, frozen)
        except QmpError as error:
            await self._stopped(place, machine)
            raise QmpError(f"{error}; it says: {machine.complaint or 'nothing'}") from error
        except BaseException:
            await self._stopped(place, machine)
            raise
        return machine

    async def _run(self, place: Path, hardware: Hardware, *, incoming: bool = False) -> Machine:
        try:
            running = await self._hypervisor.start(place, hardware, incoming=incoming)
        except BaseException:
            hardware.close()
            raise
        self._running[place] = running
        return running.machine

    async def _stopped(self, place: Path, machine: Machine) -> None:
        running = self._running.pop(place, None)
        if running is not None:
            await stop(running)
        else:
            await machine.end()

    async def _just_booted(self, spec: Spec, shape: Shape) -> Frozen:
        """Of this image and hardware; made at the first time, and kept until this object is closed."""
        if spec.image.startswith(FROZEN):
            return self._snapshot_for(spec, shape)
        disk = await self._disks.of(spec.image, shape.disk_bytes)
        async with self._booting:
            if (disk, shape) not in self._booted:
                self._booted[disk, shape] = await self._boot_one(spec, shape)
        return self._booted[disk, shape]

    async def _boot_one(self, spec: Spec, shape: Shape) -> Frozen:
        place = self._places.make(self._places.new())
        machine = await self._cold(place, spec, shape)
        try:
            async with asyncio.timeout(self._options.boot_s):
                agent = await machine.agent()
            await agent.hello()
            running = self._running[place]
            return await freeze(running.monitor, running.hardware, str(place / COW))
        finally:
            await self._stopped(place, machine)
            await self._places.remove(place)

    async def _freeze(self, box: Handle, guest: Guest) -> Frozen:
        """Stop a guest for good, and have it go on as the first copy of itself."""
        if guest.resident is None:
            guest.resident = await self._boot(box, guest, Phase.RESET)
        await self.quiet(box)
        running = self._running[guest.place]
        frozen = await freeze(running.monitor, running.hardware, str(guest.place / COW))
        try:
            await self._begin_again(box, guest, frozen, as_copy=True)
        except BaseException:
            frozen.close()
            raise
        return frozen

    async def _begin_again(
        self, box: Handle, guest: Guest, frozen: Frozen, *, as_copy: bool
    ) -> None:
        """The same sandbox on another machine: a copy of itself, or as it was created."""
        await self._end(guest)
        guest.place = self._places.make(box)
        guest.machine = await self._restore(guest.place, frozen, own_memory=as_copy)
        guest.has_repo = as_copy
        guest.ooms = 0
        guest.resident = await self._boot(box, guest, Phase.RESET)

    async def _copy(self, spec: Spec, frozen: Frozen) -> Handle:
        box = self._places.new()
        place = self._places.make(box)
        try:
            machine = await self._restore(place, frozen)
        except BaseException:
            await self._places.remove(place)
            raise
        self._guests[box] = Guest(spec, frozen.shape, place, machine, has_repo=True)
        try:
            await self.resident(box, Phase.RESET)
        except BaseException:
            await self.destroy(box)
            raise
        return box

    def _snapshot_for(self, spec: Spec, shape: Shape) -> Frozen:
        frozen = self._kept.get(spec.image)
        if frozen is None:
            raise InputError(f"{self.name} has no snapshot {spec.image} (any more)")
        if replace(frozen.shape, cpuset=None) != replace(shape, cpuset=None):
            raise InputError(f"{self.name}: a copy has the limits of what it is a copy of")
        return frozen

    @asynccontextmanager
    async def _translated(self, phase: Phase) -> AsyncIterator[None]:
        try:
            yield
        except (QmpError, BootFailed, TimeoutError) as error:
            raise SubstrateError(str(error), substrate=self.name, phase=phase) from error


def _version_of(program: Path) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.partition("(")[0].strip()
