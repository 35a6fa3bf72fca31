"""A machine that was stopped for good, to make others of: its memory, its state, its disks, all of them open files.

Memory that a machine shares with a file stays there: each copy maps the file and keeps what it writes to itself. A copy's
own memory is in no file; when a copy is frozen, all of it goes into the state instead. So copies of copies take
turns between the two, and each is right.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from excise.substrates.vm.config import Shape
from excise.substrates.vm.qmp import Qmp, QmpError

STATE = "state"
MOVE_S = 120.0
_PIECE_BYTES = 8 << 20
_LOOK_S = 0.002


@dataclass(slots=True)
class Hardware:
    """What one running machine stands on: descriptors, which are its own to close."""

    shape: Shape
    chain: tuple[int, ...]
    memory: int
    private: bool = False
    """Whether the file holds somebody else's memory, of which this machine has a copy-on-write."""

    def close(self) -> None:
        for number in (*self.chain, self.memory):
            os.close(number)


@dataclass(slots=True)
class Frozen:
    """Valid until it is closed; machines that were made of it do not need it any more."""

    shape: Shape
    chain: tuple[int, ...]
    state: int
    memory: int | None

    def close(self) -> None:
        for number in (*self.chain, self.state, *(() if self.memory is None else (self.memory,))):
            os.close(number)

    async def hardware(self, *, own_memory: bool = False) -> Hardware:
        """For one more copy. With memory of its own it starts later, and can be frozen as quickly as the first one."""
        chain = tuple(os.dup(number) for number in self.chain)
        if self.memory is None:
            return Hardware(self.shape, chain, new_memory())
        if not own_memory:
            return Hardware(self.shape, chain, os.dup(self.memory), private=True)
        memory = new_memory()
        await asyncio.to_thread(_copy_what_is_there, self.memory, memory)
        return Hardware(self.shape, chain, memory)


def new_memory() -> int:
    """An empty file in memory that grows as it is used."""
    return os.memfd_create("guest", os.MFD_CLOEXEC)


def _copy_what_is_there(source: int, target: int) -> None:
    """Holes stay holes: they are most of a guest's memory."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # nothing but a hole is left
            return
        end = os.lseek(source, at, os.SEEK_HOLE)
        while at < end:
            data = os.pread(source, min(end - at, _PIECE_BYTES), at)
            at += os.pwrite(target, data, at)


async def freeze(monitor: Qmp, hardware: Hardware, own_disk: str) -> Frozen:
    """Stop the machine and take its state. It is to be killed afterwards, and never to go on: its memory is ours now."""
    await monitor.call("stop")
    await _share(monitor, stays=not hardware.private)
    state = os.memfd_create(STATE, os.MFD_CLOEXEC)
    try:
        await monitor.give(STATE, state)
        await monitor.call("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        await monitor.call("migrate", uri=f"fd:{STATE}")
        await _moved(monitor)
        disk = await asyncio.to_thread(os.open, own_disk, os.O_RDONLY | os.O_CLOEXEC)
    except BaseException:
        os.close(state)
        raise
    chain = (*(os.dup(number) for number in hardware.chain), disk)
    memory = None if hardware.private else os.dup(hardware.memory)
    return Frozen(hardware.shape, chain, state, memory)


async def bring_back(monitor: Qmp, frozen: Frozen) -> None:
    """Into a machine that was started to wait for it; it goes on where the frozen one was stopped."""
    await _share(monitor, stays=frozen.memory is not None)
    own = await asyncio.to_thread(os.open, f"/proc/self/fd/{frozen.state}", os.O_RDONLY)
    try:
        await monitor.give(STATE, own)  # opened anew: copies must not share one position in it
    finally:
        os.close(own)
    await monitor.call("migrate-incoming", uri=f"fd:{STATE}")
    await _moved(monitor)
    await monitor.call("cont")


async def _share(monitor: Qmp, *, stays: bool) -> None:
    """Whether memory that is shared with a file is left out of the state; both ends must say the same."""
    capability = {"capability": "x-ignore-shared", "state": stays}
    await monitor.call("migrate-set-capabilities", capabilities=[capability])


async def _moved(monitor: Qmp) -> None:
    async with asyncio.timeout(MOVE_S):
        while True:
            found = await monitor.call("query-migrate")
            status = found.get("status")
            if status == "completed":
                return
            if status in {"failed", "cancelled"}:
                raise QmpError(f"the state did not move: {found.get('error-desc', status)}")
            await asyncio.sleep(_LOOK_S)
