"""`vm-uml`: user-mode Linux, a kernel that is an ordinary process of nobody's user, on one processor."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from excise.agent.binary import agent_binary
from excise.errors import InputError
from excise.substrates.vm.config import Options, Shape
from excise.substrates.vm.guests import Guests
from excise.substrates.vm.initrd import initrd
from excise.substrates.vm.lines import MEMORY, uml_line, walled
from excise.substrates.vm.machine import Machine
from excise.substrates.vm.paced import connect_paced
from excise.substrates.vm.parts import SEARCH, uml_kernel
from excise.substrates.vm.processors import processors_of
from excise.types import Isolation, Spec

_TURN = itertools.count()
"""Guests of all objects of this process take turns on the processors."""


class UserModeLinux(Guests):
    """Its kernel catches every system call of a guest's process with ptrace: calls cost, computing does not.

    One processor per guest, and always the same: a call that wakes another one costs three times as much.
    """

    isolation = Isolation.USER_KERNEL

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._initrd: int | None = None

    @cached_property
    def _kernel(self) -> Path:
        return uml_kernel(self._options)

    async def describe(self) -> dict[str, str]:
        version = await asyncio.to_thread(_version_of, self._kernel)
        return {
            "machine": "user-mode Linux, not hardware isolation",
            "kernel": version,
            "emulated": "no",
            "processors": "one per guest, pinned",
            "user": "nobody" if os.geteuid() == 0 else "the caller",
            "agent": "first process, over a serial line",
            "root": "ext4 on a copy-on-write disk",
        }

    async def close(self) -> None:
        await super().close()
        if self._initrd is not None:
            os.close(self._initrd)
            self._initrd = None

    def _check(self, spec: Spec) -> Shape:
        shape = super()._check(spec)
        if shape.network:
            raise InputError(f"{self.name} has no network: take Egress.NONE, or another substrate")
        if spec.limits.cpus is not None and spec.limits.cpus > 1:
            raise InputError(
                f"{self.name}: a guest has one processor; limits.cpus cannot be {spec.limits.cpus:g}"
            )
        return shape

    async def _start(self, place: Path, spec: Spec, shape: Shape) -> Machine:
        disk = await self._disks.of(spec.image, shape.disk_bytes)
        kernel, root = str(self._kernel), os.geteuid() == 0
        processor = _turn(processors_of(shape))
        initial = self._initial()
        base = os.open(disk, os.O_RDONLY | os.O_CLOEXEC)

        def words(port: int) -> list[str]:
            line = uml_line(kernel, shape, initrd=initial, disk=base, port=port)
            return walled(line, processors=(processor,), root=root)

        env = {"PATH": SEARCH, "TMPDIR": MEMORY, "HOME": "."}
        try:
            return Machine.start(
                words, place, files=(initial, base), env=env, connect=connect_paced
            )
        finally:
            os.close(base)

    def _initial(self) -> int:
        """The initial file system, in memory, for all guests of this object."""
        if self._initrd is None:
            self._initrd = os.memfd_create("initrd", os.MFD_CLOEXEC)
            with open(self._initrd, "wb", closefd=False) as file:
                file.write(initrd(agent_binary().read_bytes()))
        return self._initrd


def _turn(processors: Sequence[int]) -> int:
    return processors[next(_TURN) % len(processors)]


def _version_of(kernel: Path) -> str:
    said = subprocess.run([kernel, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.strip()
