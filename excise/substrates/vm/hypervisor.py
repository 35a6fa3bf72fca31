"""QEMU as a program: its parts, whether the hardware helps it, and one machine of it started."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from excise.agent.async_connection import AsyncConnection
from excise.agent.binary import agent_binary
from excise.substrates.vm.accel import NODE, PROBE_S, Verdict, find_out
from excise.substrates.vm.config import Options, Shape
from excise.substrates.vm.frozen import Hardware, new_memory
from excise.substrates.vm.initrd import initrd
from excise.substrates.vm.lines import NOBODY, walled
from excise.substrates.vm.machine import BootFailed, Machine
from excise.substrates.vm.parts import SEARCH, QemuParts, modules_in, program, qemu_parts
from excise.substrates.vm.places import Places
from excise.substrates.vm.processors import processors_of
from excise.substrates.vm.qemu_line import COW, KVM, MODULES, Files, qemu_line
from excise.substrates.vm.qmp import Qmp
from excise.types import MIB

_PROBE = Shape(256, 1, 16 * MIB, None, None, network=False)


@dataclass(eq=False, slots=True)
class Running:
    """A machine under QEMU, what it stands on, and the way to command it."""

    machine: Machine
    hardware: Hardware
    monitor: Qmp


class Hypervisor:
    """One per substrate object. Nothing is touched before the first machine is wanted."""

    def __init__(self, options: Options, places: Places) -> None:
        self._options = options
        self._places = places
        self._empty: dict[int, bytes] = {}
        self._verdict: Verdict | None = None
        self._finding_out = asyncio.Lock()

    @cached_property
    def parts(self) -> QemuParts:
        return qemu_parts(self._options)

    @cached_property
    def _kernel(self) -> int:
        return os.open(self.parts.kernel, os.O_RDONLY | os.O_CLOEXEC)

    @cached_property
    def _initial(self) -> int:
        """The initial file system, in memory, for all guests."""
        made = os.memfd_create("initrd", os.MFD_CLOEXEC)
        with open(made, "wb", closefd=False) as file:
            file.write(initrd(agent_binary().read_bytes(), modules_in(self.parts.modules, MODULES)))
        return made

    async def verdict(self) -> Verdict:
        """As chosen, or else as a guest shows it once per boot of this host."""
        async with self._finding_out:
            if self._verdict is None:
                chosen = self._options.accel
                if chosen == "auto":
                    cache = self._places.root / "acceleration.json"
                    self._verdict = await find_out(cache, self._boots_with_kvm)
                else:
                    self._verdict = Verdict(chosen, "chosen by option")
        return self._verdict

    async def start(self, place: Path, hardware: Hardware, *, incoming: bool = False) -> Running:
        """A machine that boots, or that waits for the state of another. It owns `hardware` when this returns."""
        verdict = await self.verdict()
        size = await asyncio.to_thread(_size_of, hardware.chain[0])
        await asyncio.to_thread(self._make_own, place, size)
        return await self._start(place, hardware, verdict.accel, incoming=incoming)

    def close(self) -> None:
        for name in ("_kernel", "_initial"):
            if name in self.__dict__:
                os.close(self.__dict__.pop(name))

    async def _start(
        self, place: Path, hardware: Hardware, accel: str, *, incoming: bool
    ) -> Running:
        shape = hardware.shape
        files = Files(self._kernel, self._initial, hardware.memory, hardware.chain)
        root = os.geteuid() == 0

        def words(port: int, monitor: int) -> list[str]:
            line = qemu_line(
                str(self.parts.program),
                shape,
                files,
                accel=accel,
                port=port,
                monitor=monitor,
                private=hardware.private,
                incoming=incoming,
            )
            return walled(
                line,
                processors=processors_of(shape),
                root=root,
                own_network=not shape.network,
                group=NODE.stat().st_gid if accel == KVM else NOBODY,
            )

        machine = Machine.start(
            words,
            place,
            files=files.all,
            env={"PATH": SEARCH, "HOME": "."},
            connect=AsyncConnection.over,
            monitored=True,
            booted=incoming,
        )
        assert machine.monitor is not None
        return Running(machine, hardware, Qmp(machine.monitor))

    def _make_own(self, place: Path, size: int) -> None:
        """An empty copy-on-write file: a copy of one that QEMU's own program made."""
        if size not in self._empty:
            maker = program("qemu-img", "qemu-utils")
            made = place / "empty"
            words = (str(maker), "create", "-q", "-f", "qcow2", str(made), str(size))
            subprocess.run(words, check=True, capture_output=True)
            self._empty[size] = made.read_bytes()
            made.unlink()
        own = place / COW
        own.unlink(missing_ok=True)  # of a machine that was frozen: whoever needs it has it open
        own.write_bytes(self._empty[size])
        if os.geteuid() == 0:
            os.chown(own, NOBODY, NOBODY)

    async def _boots_with_kvm(self) -> bool:
        """A small guest with an empty disk answers in time, or does not."""
        place = self._places.make(self._places.new())
        disk = place / "disk"
        words = ("-q", "-F", "-t", "ext4", str(disk), "16M")
        maker = str(program("mke2fs", "e2fsprogs"))
        running = None
        try:
            await asyncio.to_thread(
                subprocess.run, (maker, *words), check=True, capture_output=True
            )
            chain = (await asyncio.to_thread(os.open, disk, os.O_RDONLY | os.O_CLOEXEC),)
            hardware = Hardware(_PROBE, chain, new_memory())
            await asyncio.to_thread(self._make_own, place, 16 * MIB)
            running = await self._start(place, hardware, KVM, incoming=False)
            async with asyncio.timeout(PROBE_S):
                agent = await running.machine.agent()
            agent.abort()
        except (BootFailed, TimeoutError, OSError):
            return False
        else:
            return True
        finally:
            if running is not None:
                await stop(running)
            await self._places.remove(place)


async def stop(running: Running) -> None:
    """End the machine and let go of what it stood on."""
    await running.machine.end()
    running.monitor.close()
    running.hardware.close()


def _size_of(disk: int) -> int:
    return os.fstat(disk).st_size
