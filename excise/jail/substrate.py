"""The jail as a substrate: the verbs of the contract and every optional ability, for event loops.

A sandbox belongs to the event loop that made it; threads with loops of their own may share one `Jail`. Its
handle does not outlive this process, and neither does anything in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future as Building
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

from excise.agent.async_connection import AsyncConnection
from excise.agent.messages import Packed
from excise.errors import InputError, LifecycleError, Phase, SubstrateError
from excise.jail import egress, sweep
from excise.jail.control import BoxLimits
from excise.jail.errors import why_ended
from excise.jail.path import Laid
from excise.jail.phase import NAME, failed, gone
from excise.jail.proof import Looks, compare, look
from excise.jail.sandbox import Sandbox
from excise.jail.spawner import Box, Coming
from excise.jail.staging import Staging
from excise.jail.yard import Standing, Yard, limits_of
from excise.substrates.base import Proof
from excise.substrates.inside.inside import Inside
from excise.substrates.inside.tree import QUIET_S, Resident
from excise.types import Allow, Egress, Handle, Isolation, Observation, Spec
from excise.warm import counts
from excise.warm.counts import Reason

_FRESH = 16
"""Looks of new jails that are remembered for each environment: rollouts are bound in many ways."""

_Bounds: TypeAlias = tuple[BoxLimits, Egress | Allow, str, Packed]


class Jail(Inside, Staging):
    """Sandboxes of our own: name spaces, shifted ids, seccomp, landlock and limits, made in about a millisecond.

    `store` is the folder of the layer store. See the documentation for what a jail stops and what it does not.
    """

    name = NAME
    isolation = Isolation.CONTAINER
    spawns_itself = True

    def __init__(
        self, store: Path | None = None, *, leases: Path | None = None, warm: bool = False
    ) -> None:
        self.warm = warm
        self.warmed: Counter[Reason] = Counter()
        self._yard = Yard(store, leases, warm)
        self._boxes: dict[Handle, Sandbox] = {}
        self._building: dict[Laid, Building[None]] = {}
        self._fresh: WeakKeyDictionary[Standing, dict[_Bounds, Looks]] = WeakKeyDictionary()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<Jail with {len(self._boxes)} sandboxes>"

    async def create(self, spec: Spec) -> Handle:
        spec = self._yard.meant(spec)
        limits_of(spec)
        egress.check(spec.egress)
        standing = await self._standing(spec)
        try:
            return await self._create(spec, standing)
        finally:
            self._yard.let_go(standing)

    async def ready(self, box: Handle) -> None:
        sandbox = self._find(box, Phase.READY)
        with self._told(box, Phase.READY):
            await sandbox.agent.ping()

    async def destroy(self, box: Handle) -> None:
        """Returns at once; what is left of it dies behind the caller's back."""
        self._named(box, Phase.DESTROY)
        sandbox = self._boxes.pop(box, None)
        if sandbox is None or self._pid != os.getpid():
            return
        self._kill(sandbox)
        if sandbox.network is not None:
            self._yard.uplinks.let_go(sandbox.network)
        self._yard.let_go(sandbox.origin)

    async def reset(self, box: Handle) -> None:
        """A new jail on the same layers takes the place of the old one, whatever was dirtied in that."""
        sandbox = self._find(box, Phase.RESET)
        stack, limits = sandbox.origin.stack, limits_of(sandbox.spec)
        async with sandbox.turn:
            coming = self._yard.standby(stack, limits)
            await self._swap(box, sandbox, stack, coming, again=True)

    async def snapshot(self, box: Handle) -> str:
        sandbox = self._find(box, Phase.RESET)
        async with sandbox.turn:
            standing = await self._freeze(box, sandbox)
            reference = self._yard.keep(standing)
            try:
                await self._swap(box, sandbox, standing.stack)
            except BaseException:
                self._yard.forget(reference)
                raise
        return reference

    async def forget(self, reference: str) -> None:
        self._yard.forget(reference)

    async def fork(self, box: Handle, copies: int = 1) -> list[Handle]:
        if copies < 1:
            raise InputError(f"{copies} copies of a sandbox cannot be made: ask for 1 or more")
        sandbox = self._find(box, Phase.RESET)
        async with sandbox.turn:
            standing = await self._freeze(box, sandbox)
            self._yard.use(standing)
            try:
                making = [
                    asyncio.create_task(self._create(sandbox.spec, standing)) for _ in range(copies)
                ]
                going_on = asyncio.create_task(self._swap(box, sandbox, standing.stack))
                return await self._all_or_none(making, going_on)
            finally:
                self._yard.let_go(standing)

    async def pause(self, box: Handle) -> None:
        sandbox = self._find(box, Phase.RUN)
        await asyncio.to_thread(self._yard.spawner.usage(sandbox.box.kit).freeze)

    async def resume(self, box: Handle) -> None:
        sandbox = self._find(box, Phase.RUN)
        await asyncio.to_thread(self._yard.spawner.usage(sandbox.box.kit).thaw)

    async def prove(self, box: Handle) -> Proof:
        """Compares with a jail that is made for it on the same layers, once for each."""
        sandbox = self._find(box, Phase.RUN)
        now = await self._look(box, sandbox)
        known = self._fresh.setdefault(sandbox.origin, {})
        bounds = (sandbox.limits, sandbox.spec.egress, sandbox.habits.user, sandbox.habits.packed)
        fresh = known.get(bounds)
        if fresh is None:
            sibling = await self._create(sandbox.spec, sandbox.origin)
            try:
                fresh = await self._look(sibling, self._boxes[sibling])
            finally:
                await self.destroy(sibling)
            if len(known) >= _FRESH:
                known.clear()
            known[bounds] = fresh
        ground = sandbox.origin.ground
        return compare(now, fresh, ground.digests, ground.missing)

    async def has_image(self, reference: str) -> bool:
        return await asyncio.to_thread(self._yard.holds, reference)

    async def import_image(self, reference: str, archive: Path) -> None:
        await asyncio.to_thread(self._yard.take_in, reference, archive)

    async def host_address(self) -> str:
        return egress.host_address()

    async def sweep(self) -> int:
        """Remove what killed processes left of their jails."""
        return (await asyncio.to_thread(sweep.sweep, self._yard.leases)).leases

    async def describe(self) -> dict[str, str]:
        spawner = self._yard.spawner
        facts = spawner.facts
        return {
            "kernel": platform.release(),
            "limits": str(spawner.layout),
            "attach": "fast" if facts & facts.FAST_ATTACH else "as the kernel does it",
            "landlock": "yes" if facts & facts.LANDLOCK else "no",
            "ids": "shifted, layers idmapped" if facts & facts.IDMAP else "the caller's own only",
            "agent": "static program, forked, no exec",
        }

    async def close(self) -> None:
        """End every sandbox of this object and the process that made them."""
        for box in tuple(self._boxes):
            with contextlib.suppress(SubstrateError):
                await self.destroy(box)
        self._fresh.clear()
        self._yard.close()
        if self._builders is not None and self._pid == os.getpid():
            self._builders.shutdown(wait=False, cancel_futures=True)
            self._builders = None

    async def _create(self, spec: Spec, standing: Standing) -> Handle:
        habits, limits = self._yard.habits(spec, standing), limits_of(spec)
        made, agent, network = await self._make(spec, standing.stack, warm=standing.is_warm)
        box = Handle(self._yard.name())
        self._yard.use(standing)
        loop = asyncio.get_running_loop()
        self._boxes[box] = Sandbox(spec, habits, standing, made, agent, loop, limits, network)
        return box

    async def _make(
        self, spec: Spec, stack: int, coming: Coming | None = None, *, warm: bool
    ) -> tuple[Box, AsyncConnection, egress.Network | None]:
        spawner = self._yard.spawner
        if coming is not None:
            made = await spawner.collect_async(coming)
        else:
            made = await spawner.create_async(stack, limits_of(spec), hostname=NAME)
        agent = network = None
        try:
            agent = await AsyncConnection.over(made.socket)
            if warm:
                await agent.write(counts.PLACE, b"", mode=0o666)
            if spec.egress is not Egress.NONE:
                network = await self._yard.uplinks.open(made.pid, spec.egress)
                await agent.write("/etc/resolv.conf", network.resolv_conf.encode())
        except BaseException:
            spawner.destroy(made.number)
            if agent is None:
                made.socket.close()
            else:
                agent.abort()  # the event loop must let go of the socket before its number is used again
            if network is not None:
                self._yard.uplinks.let_go(network)
            raise
        return made, agent, network

    async def _swap(
        self,
        box: Handle,
        sandbox: Sandbox,
        stack: int,
        coming: Coming | None = None,
        *,
        again: bool = False,
    ) -> None:
        """Another jail under the same handle; the old one dies in the background. `again`: the next is made ahead."""
        warm = sandbox.origin.is_warm
        made, agent, network = await self._make(sandbox.spec, stack, coming, warm=warm)
        before = replace(sandbox, turn=sandbox.turn)
        sandbox.box, sandbox.agent, sandbox.network, sandbox.oom_kills = made, agent, network, 0
        sandbox.limits = limits_of(sandbox.spec)
        if again and box in self._boxes:
            self._yard.relieve(before.box.number, before.origin, sandbox.limits)
            before.agent.abort()
        else:
            self._kill(before)
        if before.network is not None:
            self._yard.uplinks.let_go(before.network)
        if box not in self._boxes:  # destroyed meanwhile
            self._kill(sandbox)
            raise gone(f"{box} was destroyed", Phase.RESET)

    async def _freeze(self, box: Handle, sandbox: Sandbox) -> Standing:
        """End what runs in it and keep what it wrote. The sandbox is to be swapped next."""
        with self._told(box, Phase.RESET):
            await sandbox.agent.quiet(QUIET_S)
        frozen = await self._yard.spawner.snapshot_async(sandbox.box.number)
        return self._yard.stand_on(frozen, sandbox.origin)

    async def _all_or_none(
        self, making: Sequence[asyncio.Task[Handle]], going_on: asyncio.Task[None]
    ) -> list[Handle]:
        try:
            await asyncio.gather(*making, going_on)
        except BaseException:
            await asyncio.wait([*making])
            await asyncio.wait([going_on])
            for made in making:
                if not made.cancelled() and made.exception() is None:
                    await self.destroy(made.result())
            raise
        return [made.result() for made in making]

    async def _look(self, box: Handle, sandbox: Sandbox) -> Looks:
        with self._told(box):
            said = await sandbox.look_around()
        limits = self._yard.spawner.usage(sandbox.box.kit).limits()
        upper = self._yard.spawner.upper(sandbox.box.number)
        try:
            return await asyncio.to_thread(look, upper, sandbox.box.pid, said, limits)
        except OSError as error:
            raise failed(f"cannot look at {box}: {error}", Phase.RUN) from error
        finally:
            os.close(upper)

    async def warmth(self, box: Handle) -> Mapping[str, int]:
        """What became of runs of its interpreter. Whoever works in there can lie about it."""
        told = self._counted(self._find(box, Phase.RUN))
        return {str(reason): number for reason, number in told.items()}

    def _counted(self, sandbox: Sandbox) -> Counter[Reason]:
        if not sandbox.origin.is_warm:
            return Counter()
        try:
            upper = self._yard.spawner.upper(sandbox.box.number)
        except SubstrateError:
            return Counter()
        return counts.taken(upper)

    def _kill(self, sandbox: Sandbox) -> None:
        """Two ways at once: the spawner is told, and the agent sees its client go."""
        self.warmed.update(self._counted(sandbox))
        with contextlib.suppress(SubstrateError):
            self._yard.spawner.destroy(sandbox.box.number)
        sandbox.agent.abort()

    async def resident(self, box: Handle, phase: Phase) -> Resident:
        return self._find(box, phase)

    def lost(self, box: Handle, phase: Phase) -> SubstrateError:
        sandbox = self._boxes.get(box)
        if sandbox is None:
            return gone(f"{box} was destroyed", phase)
        return why_ended(box, phase, self._yard.spawner.end_of(sandbox.box.number))

    async def ran_out_of_memory(self, box: Handle, seen: Observation) -> bool:
        """Whether the kernel has killed something in there for want of memory since we last looked."""
        del seen
        sandbox = self._find(box, Phase.RUN)
        kills = self._yard.spawner.usage(sandbox.box.kit).oom_kills() or 0
        before, sandbox.oom_kills = sandbox.oom_kills, kills
        return kills > before

    def _find(self, box: Handle, phase: Phase) -> Sandbox:
        self._named(box, phase)
        sandbox = self._boxes.get(box)
        if sandbox is None:
            raise gone(f"there is no sandbox {box}", phase)
        if self._pid != os.getpid():
            raise gone(f"{box} is of process {self._pid}, and this is a child of it", phase)
        if asyncio.get_running_loop() is not sandbox.loop:
            raise LifecycleError(f"{box} was made in another event loop: use it in that one")
        return sandbox

    def _named(self, box: Handle, phase: Phase) -> None:
        if not box.startswith(f"{NAME}-"):
            raise gone(f"{box!r} is no handle of mine", phase)
