"""The jail's part in warm pools: environments stage by stage, taken further, and what belongs to one rollout set late.

All jails of one environment are mounts of the same layers. So once it is laid out, another one costs what a jail
costs, a fork of a pristine one would save nothing, and a jail that stood elsewhere is taken there by a swap.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from concurrent.futures import Future as Building
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from excise.errors import Phase
from excise.jail.path import Laid, cut, laid
from excise.jail.phase import failed, gone
from excise.jail.sandbox import Sandbox
from excise.jail.spawner import Coming
from excise.jail.uplinks import Uplinks
from excise.jail.yard import Standing, Yard, limits_of
from excise.pools.stage import Path
from excise.types import Egress, Handle, Spec

BUILDERS = 8
"""Environments that are laid out at once: what takes long must not keep others from what takes a moment."""


class Staging(ABC):
    """Stages, advance and bind, over a yard."""

    _yard: Yard
    _builders: ThreadPoolExecutor | None = None
    _building: dict[Laid, Building[None]]

    @abstractmethod
    def _find(self, box: Handle, phase: Phase) -> Sandbox: ...

    @abstractmethod
    async def _create(self, spec: Spec, standing: Standing) -> Handle: ...

    @abstractmethod
    async def _swap(
        self, box: Handle, sandbox: Sandbox, stack: int, coming: Coming | None = None
    ) -> None: ...

    @abstractmethod
    def _told(
        self, box: Handle, phase: Phase = Phase.RUN
    ) -> contextlib.AbstractContextManager[None]: ...

    def stages(self, spec: Spec) -> Path:
        """Base, image, dependencies, repository; each at the price of its layers when they were last built here."""
        return self._yard.stages(self._yard.meant(spec))

    async def lay(self, spec: Spec, depth: int) -> None:
        """Have the layers of the first stages here, without a jail on them."""
        self._yard.let_go(await self._standing(cut(self._yard.meant(spec), depth)))

    async def create_at(self, spec: Spec, depth: int) -> Handle:
        """A jail on the first stages of the spec's path."""
        wanted = cut(self._yard.meant(spec), depth)
        standing = await self._standing(wanted)
        try:
            return await self._create(wanted, standing)
        finally:
            self._yard.let_go(standing)

    async def advance(self, box: Handle, spec: Spec) -> None:
        """Another jail under the same handle, on what is shared and what was missing."""
        sandbox, spec = self._find(box, Phase.CREATE), self._yard.meant(spec)
        standing = await self._standing(spec)
        try:
            async with sandbox.turn:
                await self._take_to(box, sandbox, spec, standing)
        finally:
            self._yard.let_go(standing)

    def bind_now(self, box: Handle, spec: Spec) -> bool:
        """Env and user count from the next command on; limits and egress must be what they are."""
        sandbox = self._find(box, Phase.CREATE)
        if not sandbox.agent.alive:
            return False
        if spec.egress != sandbox.spec.egress or limits_of(spec) != sandbox.limits:
            return False
        self._note(sandbox, spec)
        return True

    async def bind(self, box: Handle, spec: Spec) -> None:
        """The limits too, at once; egress is opened or closed as it must be."""
        sandbox = self._find(box, Phase.CREATE)
        if not sandbox.agent.alive:
            raise gone(f"{box} has ended", Phase.CREATE)
        reached = sandbox.spec.egress
        self._note(sandbox, spec)
        limits = limits_of(spec)
        async with sandbox.turn:
            usage = self._yard.spawner.usage(sandbox.box.kit)
            if not usage.limit(sandbox.limits, limits):
                await self._swap(box, sandbox, sandbox.origin.stack)
                return
            sandbox.limits = limits
            if spec.egress != reached:
                with self._told(box, Phase.CREATE):
                    await _reconnect(sandbox, self._yard.uplinks)

    def _note(self, sandbox: Sandbox, spec: Spec) -> None:
        """All but the layers."""
        before = sandbox.spec
        sandbox.spec = replace(
            spec, image=before.image, repo=before.repo, deps=before.deps, warm=before.warm
        )
        if (spec.env, spec.user) != (before.env, before.user):
            sandbox.habits = self._yard.habits(sandbox.spec, sandbox.origin)

    async def _standing(self, spec: Spec) -> Standing:
        """What its jails stand on; the caller is a user of it and lets go of it."""
        while (standing := self._yard.known(spec)) is None:
            await _end_of(self._laying(spec))
        return standing

    def _laying(self, spec: Spec) -> Building[None]:
        """One build, however many want it."""
        key = laid(spec)
        building = self._building.get(key)
        if building is None or building.done():
            if self._builders is None:
                self._builders = ThreadPoolExecutor(BUILDERS, thread_name_prefix="excise-lay")
            building = self._builders.submit(lambda: self._yard.let_go(self._yard.lay(spec)))
            self._building[key] = building
            building.add_done_callback(lambda _: self._building.pop(key, None))
        return building

    async def _take_to(self, box: Handle, sandbox: Sandbox, spec: Spec, standing: Standing) -> None:
        before, origin = (sandbox.spec, sandbox.habits), sandbox.origin
        sandbox.spec, sandbox.habits = spec, self._yard.habits(spec, standing)
        self._yard.use(standing)
        sandbox.origin = standing
        try:
            await self._swap(box, sandbox, standing.stack)
        except BaseException:
            (sandbox.spec, sandbox.habits), sandbox.origin = before, origin
            self._yard.let_go(standing)
            raise
        self._yard.let_go(origin)


async def _end_of(building: Building[None]) -> None:
    """Wait for it without being in its way: whoever stops waiting, or ends his loop, stops no build."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def settle() -> None:
        if not ended.done():
            ended.set_result(None)

    def tell(_: Building[None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle)

    building.add_done_callback(tell)
    await ended
    if building.cancelled():
        raise failed("the jail was closed while it was laid out")
    building.result()


async def _reconnect(sandbox: Sandbox, uplinks: Uplinks) -> None:
    """The network that its spec asks for, in place of the one it has."""
    before, sandbox.network = sandbox.network, None
    if before is not None:
        await before.close()
    resolv_conf = b""
    if sandbox.spec.egress is not Egress.NONE:
        sandbox.network = await uplinks.open(sandbox.box.pid, sandbox.spec.egress)
        resolv_conf = sandbox.network.resolv_conf.encode()
    await sandbox.agent.write("/etc/resolv.conf", resolv_conf)
