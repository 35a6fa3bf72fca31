"""How a sandbox comes to be: admitted, made, entered into the books, and ready for its first action."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from excise.errors import InputError, Overloaded, Phase, SubstrateError
from excise.service.abilities import Abilities
from excise.service.admission import Use, refusal
from excise.service.builds import Builds, Prepared
from excise.service.errors import Refused
from excise.service.journal import Journal
from excise.service.meter import Meter
from excise.service.problems import Fault, problem_of
from excise.service.processes import Process, Processes
from excise.service.rates import Rate
from excise.service.sandbox import NS, AtEnd, Ended, Sandbox, Wanted, new_id
from excise.service.taxes import Coming, Taxes
from excise.service.templates import Template
from excise.service.wish import moved_in, spec_of, template_of, until_ready
from excise.types import Action, Handle, Observation, Spec


class Making(Abilities):
    """The part of the cloud that makes sandboxes."""

    builds: Builds
    taxes: Taxes
    draining: bool
    _coming: Counter[str]
    _creates: Rate
    _meter: Meter
    _journal: Journal | None

    @abc.abstractmethod
    async def run(self, sandbox: Sandbox, action: Action) -> Observation: ...
    @abc.abstractmethod
    async def destroy(self, sandbox: Sandbox, why: Ended = Ended.DESTROYED) -> None: ...

    async def _create(self, owner: str, wanted: Wanted) -> Sandbox:
        for end in {wanted.at_end, wanted.at_idle} - {None}:
            self.must_be_able(cast("AtEnd", end))
        self._deadline_ns(wanted.lifetime_s)
        template = template_of(owner, wanted, self.templates, self.policy, self.substrate.isolation)
        with self.coming(Coming(owner, wanted, template.spec.image, self.now_ns())) as coming:
            prepared = await self.builds.prepared(template)
            spec = spec_of(owner, wanted, prepared.spec, self.policy)
            prepared = moved_in(wanted, prepared, spec, self.substrate.isolation)
            self.admit(owner, spec)
            with self.census.named(owner, wanted.name):
                handle, created_ns = await self._made(owner, spec, prepared)
                sandbox = self._enter(owner, wanted, spec, handle, coming.asked_ns, created_ns)
        sandbox.user = template.labels.get("user") or prepared.stand.user
        sandbox.workdir = prepared.stand.workdir
        try:
            await self._started(sandbox, template)
        except BaseException:
            await self.destroy(sandbox, Ended.FAILED)
            raise
        return sandbox

    @contextlib.contextmanager
    def coming(self, coming: Coming) -> Iterator[Coming]:
        """Sandboxes come to be in this block. That the infrastructure gave none is a rollout that failed, and is kept.

        Whom it refused only for now is told when to come again, and has lost nothing.
        """
        try:
            yield coming
        except Exception as error:
            if problem_of(error).fault is Fault.INFRASTRUCTURE and not isinstance(
                error, Overloaded
            ):
                now_ns = self.now_ns()
                self.taxes.never_came(coming, now_ns, self.wall_s(now_ns), error)
            raise

    async def _started(self, sandbox: Sandbox, template: Template) -> None:
        """What its template says is to run in it runs, and is ready."""
        if template.start is not None:
            action = replace(
                Action.shell(template.start, cwd=sandbox.workdir, timeout_s=None), user=sandbox.user
            )
            await sandbox.processes.start(action, tag="start")
        if template.ready is not None:
            action = replace(Action.shell(template.ready, cwd=sandbox.workdir), user=sandbox.user)
            await until_ready(lambda: self.run(sandbox, action))

    async def _made(self, owner: str, spec: Spec, prepared: Prepared) -> tuple[Handle, int]:
        """A sandbox that could run an action, and when it was created; nothing is left of one that could not."""
        self._coming[owner] += 1
        try:
            handle = await self.substrate.create(spec)
            created_ns = self.now_ns()
            try:
                await self.substrate.ready(handle)
                if prepared.left:
                    await self.builds.complete(prepared, handle, prepared.stand)
            except BaseException:
                with contextlib.suppress(SubstrateError):
                    await asyncio.shield(self.substrate.destroy(handle))
                raise
        finally:
            self._coming[owner] -= 1
            if not self._coming[owner]:
                del self._coming[owner]
        return handle, created_ns

    def admit(self, owner: str, spec: Spec, copies: int = 1) -> None:
        """Refuse at once what would not fit, or comes too fast."""
        del spec
        if self.draining:
            text = "the service is shutting down"
            raise Refused(text, phase=Phase.CREATE, retry_after_s=5.0)
        wait_s = self._creates.take(owner, self.now_ns() / NS, copies)
        if wait_s is not None:
            text = f"you make sandboxes faster than {self.policy.creates_per_s:g} a second"
            raise Refused(text, phase=Phase.CREATE, retry_after_s=wait_s, theirs=True)
        coming = self._coming
        use = Use(
            len(self.census) + coming.total(),
            self.census.of(owner) + coming[owner],
            *self._meter.read(),
        )
        refused = refusal(self.policy, use, copies)
        if refused is not None:
            raise refused

    def _enter(
        self,
        owner: str,
        wanted: Wanted,
        spec: Spec,
        handle: Handle,
        asked_ns: int,
        created_ns: int | None = None,
    ) -> Sandbox:
        now_ns = self.now_ns()

        def busy(ended: Process | None) -> None:
            sandbox.acting += 1 if ended is None else -1
            sandbox.used_ns = self.now_ns()
            if ended is None:
                return
            self.census.due(sandbox)
            if ended.awaited and ended.exit is not None:
                self.taxes.acted(sandbox, ended.started_ns, sandbox.used_ns, ended.exit)

        sandbox = Sandbox(
            id=new_id(),
            owner=owner,
            wanted=wanted,
            spec=spec,
            handle=handle,
            token=secrets.token_hex(16),
            asked_ns=asked_ns,
            created_ns=now_ns if created_ns is None else created_ns,
            ready_ns=now_ns,
            used_ns=now_ns,
            deadline_ns=self._deadline_ns(wanted.lifetime_s),
            idle_s=wanted.idle_s,
            at_end=wanted.at_end,
            at_rest_end=wanted.at_end,
            at_idle=wanted.at_idle,
            rest_s=wanted.rest_s,
            processes=Processes(self.substrate, lambda: sandbox.handle, self.now_ns, busy),
            name=wanted.name or "",
            labels=dict(wanted.labels),
        )
        self.census.enter(sandbox)
        self.taxes.began(sandbox)
        if self._journal is not None:
            self._journal.made(sandbox.id, owner, handle, self.wall_s(now_ns))
        return sandbox

    def _deadline_ns(self, lifetime_s: float | None) -> int | None:
        longest_s = self.policy.longest_life_s
        if (lifetime_s or 0) < 0:
            raise InputError(f"a lifetime of {lifetime_s:g} s: give 0 or more")
        return self.now_ns() + round(min(longest_s, lifetime_s or longest_s) * NS)
