"""Machines of a cloud as sandboxes: the verbs of the contract over a driver's four, and an agent that came over ssh."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from excise.agent.binary import agent_binary
from excise.errors import (
    DeadlineExceeded,
    InputError,
    LifecycleError,
    Phase,
    SandboxGone,
    SubstrateError,
)
from excise.substrates.container.owner import myself
from excise.substrates.inside.habits import WORKSPACE
from excise.substrates.inside.inside import Inside
from excise.substrates.inside.surroundings import habits_of
from excise.substrates.vm.cloud.bring_up import Machine, bring_up
from excise.substrates.vm.cloud.config import Options
from excise.substrates.vm.cloud.control import (
    BadRequest,
    CloudControl,
    CloudError,
    NoCapacity,
    Throttled,
)
from excise.substrates.vm.cloud.labels import is_left_behind, labels_of
from excise.substrates.vm.cloud.readiness import Lost
from excise.substrates.vm.guests import Resident
from excise.substrates.vm.places import Places
from excise.types import Handle, Isolation, Spec

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Box:
    spec: Spec
    machine: Machine
    resident: Resident | None = None
    coming_up: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)


class CloudMachines(Inside):
    """`vm-cloud`. A machine that its cloud would not delete stays known, so that it can be tried again."""

    name = "vm-cloud"
    isolation = Isolation.VM

    def __init__(self, options: Options, control: CloudControl) -> None:
        self._options = options
        self._control = control
        self._places = Places(self.name)
        self._boxes: dict[Handle, _Box] = {}

    async def create(self, spec: Spec) -> Handle:
        if spec.deps:
            raise InputError(f"{self.name} lays no dependencies: name an image that holds them")
        box = self._places.new()
        place = self._places.make(box)
        began = time.monotonic_ns()
        asking = asyncio.ensure_future(self._control.create(box, labels_of(myself())))
        try:
            number = await self._translated(asyncio.shield(asking), Phase.CREATE)
        except BaseException:
            await self._take_back(asking)
            await self._places.remove(place)
            raise
        machine = Machine(number, place)
        machine.progress.begin(began)
        self._boxes[box] = _Box(spec, machine)
        return box

    async def ready(self, box: Handle) -> None:
        await self.resident(box, Phase.READY)

    async def resident(self, box: Handle, phase: Phase) -> Resident:
        found = self._box(box, phase)
        if found.resident is None:
            async with found.coming_up:
                if found.resident is None:
                    found.resident = await self._come_up(box, found, phase)
        return found.resident

    def steps_s(self, box: Handle) -> dict[str, float]:
        """How long each step of its readiness took, in seconds."""
        return self._box(box, Phase.READY).machine.progress.spans_s()

    def waited(self, box: Handle) -> dict[str, int]:
        """What was waited out on the way, and how often."""
        progress = self._box(box, Phase.READY).machine.progress
        return {str(sign): count for sign, count in progress.waited.items()}

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        found = self._boxes.get(box)
        ssh = found.machine.ssh if found is not None else None
        why = f"the connection to {box} has ended" if ssh is not None else f"{box} was destroyed"
        said = f": {ssh.complaint}" if ssh is not None and ssh.complaint else ""
        return SandboxGone(why + said, substrate=self.name, phase=phase)

    async def destroy(self, box: Handle) -> None:
        if not self._places.is_ours(box):
            raise self._not_mine(box, Phase.DESTROY)
        found = self._boxes.get(box)
        if found is None:
            return
        await found.machine.let_go()
        found.resident = None
        await self._translated(self._control.delete(found.machine.id), Phase.DESTROY)
        if self._boxes.pop(box, None) is not None:
            await self._places.remove(found.machine.place)

    async def sweep(self) -> int:
        """Delete the machines whose owner, a process of this host, is certainly dead."""
        left = [
            each
            for each in await self._translated(self._control.owned(), Phase.DESTROY)
            if is_left_behind(each.labels)
        ]
        for each in left:
            await self._translated(self._control.delete(each.id), Phase.DESTROY)
        for place in self._places.orphans():
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        return len(left)

    async def describe(self) -> dict[str, str]:
        return {
            "provider": self._control.name,
            "image": self._options.image,
            "type": self._options.type,
            "region": self._options.region or "the account's own",
            "user": self._options.user,
            "agent": "over one kept ssh connection",
            "limits": "the machine's type; none is enforced",
            "egress": "as its cloud gives it; none is enforced",
        }

    async def close(self) -> None:
        """Delete every machine of this object: none can be used without its connection."""
        try:
            for box in tuple(self._boxes):
                await self.destroy(box)
        finally:
            await self._control.close()

    async def _come_up(self, box: Handle, found: _Box, phase: Phase) -> Resident:
        machine, limit_s = found.machine, self._options.boot_s
        program = await asyncio.to_thread(agent_binary().read_bytes)
        try:
            async with asyncio.timeout(limit_s):
                agent = await self._translated(
                    bring_up(machine, self._control, self._options.account, program), phase
                )
        except TimeoutError as error:
            await machine.let_go()
            text = f"{box} got no further than {machine.progress.step!s} in {limit_s:g} s"
            waited = ", ".join(
                f"{count} x {sign}" for sign, count in machine.progress.waited.items()
            )
            raise DeadlineExceeded(
                f"{text}{f'; waited out: {waited}' if waited else ''}",
                substrate=self.name,
                phase=phase,
            ) from error
        with self._told(box, phase):
            spec = found.spec
            habits = await habits_of(agent, env=spec.env, user=spec.user)
            if spec.repo is not None:
                await agent.upload(Path(spec.repo.source), f"{WORKSPACE}/{spec.repo.path}")
        return Resident(agent, habits)

    async def _take_back(self, asking: asyncio.Future[str]) -> None:
        """Whoever was asked for a machine may have made it: it is not to be paid for by nobody."""
        with contextlib.suppress(CloudError, asyncio.CancelledError):
            await self._control.delete(await asking)

    async def _translated(self, asked: Awaitable[T], phase: Phase) -> T:
        try:
            return await asked
        except BadRequest as error:
            raise InputError(f"{self.name}: {self._control.name} refuses: {error}") from error
        except NoCapacity as error:
            raise self._broken(f"no capacity: {error}", phase, retryable=True) from error
        except Throttled as error:
            raised = self._broken(f"throttled: {error}", phase, retryable=True)
            raised.retry_after_s = error.after_s
            raise raised from error
        except Lost as error:
            raise SandboxGone(str(error), substrate=self.name, phase=phase) from error
        except CloudError as error:
            raise self._broken(str(error), phase, retryable=True) from error

    def _box(self, box: Handle, phase: Phase) -> _Box:
        if not self._places.is_ours(box):
            raise self._not_mine(box, phase)
        found = self._boxes.get(box)
        if found is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if asyncio.get_running_loop() is not found.loop:
            raise LifecycleError(f"{box} was made in another event loop: use it in that one")
        return found

    def _not_mine(self, box: Handle, phase: Phase) -> SandboxGone:
        return SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)

    def _broken(self, message: str, phase: Phase, *, retryable: bool = False) -> SubstrateError:
        return SubstrateError(message, substrate=self.name, phase=phase, retryable=retryable)
