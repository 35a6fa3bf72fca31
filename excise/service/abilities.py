"""What the cloud can do with a sandbox only where the substrate can: hold it still, empty it, keep or copy its files."""

from __future__ import annotations

import abc
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar, cast

from excise.errors import LifecycleError, Phase, SandboxGone
from excise.service.catalogue import Catalogue
from excise.service.census import Census
from excise.service.errors import NAME, Unsupported
from excise.service.policy import Policy
from excise.service.sandbox import NS, AtEnd, Sandbox, State, Wanted, new_id
from excise.service.taxes import Coming
from excise.service.templates import Template
from excise.substrates.base import (
    Forks,
    Pauses,
    Proof,
    Proves,
    Quiets,
    Resettable,
    Snapshots,
    Substrate,
)
from excise.types import Handle, Spec

T = TypeVar("T")


class Abilities(abc.ABC):
    """The part of the cloud that asks for abilities; `Unsupported` where they are not there."""

    substrate: Substrate
    census: Census
    templates: Catalogue
    policy: Policy

    @abc.abstractmethod
    def now_ns(self) -> int: ...
    @abc.abstractmethod
    def wall_s(self, at_ns: int) -> float: ...
    @abc.abstractmethod
    def extend(self, sandbox: Sandbox, lifetime_s: float | None) -> None: ...
    @abc.abstractmethod
    def admit(self, owner: str, spec: Spec, copies: int) -> None: ...
    @abc.abstractmethod
    def coming(self, coming: Coming) -> AbstractContextManager[Coming]: ...
    @abc.abstractmethod
    def _enter(
        self,
        owner: str,
        wanted: Wanted,
        spec: Spec,
        handle: Handle,
        asked_ns: int,
        created_ns: int | None = None,
    ) -> Sandbox: ...

    async def pause(self, sandbox: Sandbox) -> None:
        """Hold every process still; its memory stays. A pause has a deadline of its own. Idempotent."""
        must_live(sandbox)
        if sandbox.state is State.PAUSED:
            return
        must_be(sandbox, State.RUNNING, "pause")
        await self._able(Pauses, "pause sandboxes").pause(sandbox.handle)
        self._rest(sandbox, State.PAUSED)

    async def resume(self, sandbox: Sandbox, lifetime_s: float | None = None) -> None:
        """Let a paused or stopped one go on, with that long to live. A running one is only given the time."""
        must_live(sandbox)
        if sandbox.state is State.PAUSED:
            await self._able(Pauses, "pause sandboxes").resume(sandbox.handle)
            must_live(sandbox)
        sandbox.state = State.RUNNING
        sandbox.at_end = sandbox.at_rest_end
        sandbox.used_ns = self.now_ns()
        self.extend(sandbox, sandbox.wanted.lifetime_s if lifetime_s is None else lifetime_s)

    async def stop(self, sandbox: Sandbox) -> None:
        """End all that runs in it; its files stay until it is resumed or its time is over. Idempotent."""
        must_live(sandbox)
        if sandbox.state is State.STOPPED:
            return
        able = self._able(Quiets, "stop sandboxes")
        if sandbox.state is State.PAUSED:
            await self.resume(sandbox)
        await sandbox.processes.end_all()
        await able.quiet(sandbox.handle)
        self._rest(sandbox, State.STOPPED)

    async def reset(self, sandbox: Sandbox) -> None:
        """Back to the state it was made in: no files, no processes."""
        must_be(sandbox, State.RUNNING, "reset")
        able = self._able(Resettable, "reset sandboxes")
        await sandbox.processes.end_all()
        await able.reset(sandbox.handle)
        sandbox.used_ns = self.now_ns()

    async def prove(self, sandbox: Sandbox) -> Proof:
        """What differs from a sandbox that was just made."""
        must_be(sandbox, State.RUNNING, "look into")
        return await self._able(Proves, "prove a sandbox's state").prove(sandbox.handle)

    async def snapshot(self, sandbox: Sandbox, name: str | None = None) -> Template:
        """Keep its files as a template of its owner's. What runs in it is ended; it goes on."""
        must_be(sandbox, State.RUNNING, "snapshot")
        able = self._able(Snapshots, "keep snapshots")
        await sandbox.processes.end_all()
        template = Template(
            name or f"snapshot-{new_id()}",
            sandbox.owner,
            replace(sandbox.spec, labels={}),
            workdir=sandbox.workdir,
            made_s=self.wall_s(self.now_ns()),
            snapshot=await able.snapshot(sandbox.handle),
            labels={"user": sandbox.user} if sandbox.user else {},
        )
        return await self.templates.put(template)

    async def fork(
        self,
        sandbox: Sandbox,
        copies: int = 1,
        *,
        lifetime_s: float | None = None,
        name: str | None = None,
    ) -> list[Sandbox]:
        """Copies with the same files, all or none; the only one may have a name. What runs in it is ended; it goes on."""
        must_be(sandbox, State.RUNNING, "fork")
        able = self._able(Forks, "fork sandboxes")
        self.admit(sandbox.owner, sandbox.spec, copies)
        asked_ns = self.now_ns()
        life_s = sandbox.wanted.lifetime_s if lifetime_s is None else lifetime_s
        wanted = replace(sandbox.wanted, name=name if copies == 1 else None, lifetime_s=life_s)
        with self.census.named(sandbox.owner, wanted.name):
            await sandbox.processes.end_all()
            with self.coming(Coming(sandbox.owner, wanted, sandbox.spec.image, asked_ns)):
                handles = await able.fork(sandbox.handle, copies)
            made = [self._enter(sandbox.owner, wanted, sandbox.spec, h, asked_ns) for h in handles]
        for each in made:
            each.user, each.workdir = sandbox.user, sandbox.workdir
            each.labels = dict(sandbox.labels)
        return made

    def must_be_able(self, at_end: AtEnd) -> None:
        """Refuse at once what could not be done when the time is over."""
        if at_end is AtEnd.PAUSE:
            self._able(Pauses, "pause sandboxes")
        if at_end is AtEnd.STOP:
            self._able(Quiets, "stop sandboxes")

    def _rest(self, sandbox: Sandbox, state: State) -> None:
        """It rests for the longest that this service lets one rest, and is ended then."""
        sandbox.state = state
        sandbox.at_rest_end, sandbox.at_end = sandbox.at_end, AtEnd.DESTROY
        longest_s = self.policy.longest_pause_s
        rest_s = longest_s if sandbox.rest_s is None else min(longest_s, sandbox.rest_s)
        sandbox.deadline_ns = self.now_ns() + round(rest_s * NS)
        self.census.due(sandbox)

    def _able(self, ability: Callable[..., T], what: str) -> T:
        if not isinstance(self.substrate, cast("type[T]", ability)):
            raise Unsupported(f"{self.substrate.name} cannot {what}")
        return self.substrate


def must_live(sandbox: Sandbox) -> None:
    """SandboxGone, with why, for one that has ended."""
    if sandbox.state is State.ENDED:
        text = f"sandbox {sandbox.id} has ended: {sandbox.ended}"
        raise SandboxGone(text, substrate=NAME, phase=Phase.RUN)


def must_be(sandbox: Sandbox, state: State, verb: str) -> None:
    """LifecycleError for a verb that its state does not allow."""
    must_live(sandbox)
    if sandbox.state is not state:
        raise LifecycleError(f"cannot {verb} {sandbox.id} while it is {sandbox.state}: resume it")
