"""A pool: a substrate over a substrate, with the sandboxes ready before they are asked for.

It is measured, served and nested like any other substrate. Nothing that belongs to one rollout is decided
before that rollout is there, and every rollout can be told what it got and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import Self

from excise.clock import Clock, SystemClock
from excise.errors import InputError, Phase, SandboxGone, SubstrateError
from excise.pools.abilities import Binds
from excise.pools.box import Unfit
from excise.pools.counts import Acquired, Counts, exposition
from excise.pools.dispatch import Dispatch
from excise.pools.environments import Environment
from excise.pools.lease import Lease
from excise.pools.rules import Rules
from excise.pools.size import Copy
from excise.pools.stage import shared, whole_price_s, work_left_s
from excise.substrates.base import Closes, Spent, Substrate
from excise.types import Action, Handle, Isolation, Observation, Spec


class Pool:
    """`async with pooled(substrate, Rules(...)) as pool:`; then it is used like any substrate.

    It takes over the substrate: closing the pool destroys every sandbox, held or not, and closes it.
    """

    def __init__(
        self, substrate: Substrate, rules: Rules | None = None, *, clock: Clock | None = None
    ) -> None:
        self.inner = substrate
        self.name = f"{substrate.name}+pool"
        self.rules = rules or Rules()
        self._dispatch = Dispatch(substrate, self.rules, clock or SystemClock(), self.name)
        self._supply = self._dispatch.supply
        self._binds = isinstance(substrate, Binds)
        self._closed = False

    def __repr__(self) -> str:
        now = self.status()
        return (
            f"<Pool {self.name}: {now['idle']} idle, {now['held']} held, {now['waiting']} waiting>"
        )

    @property
    def isolation(self) -> Isolation:
        return self.inner.isolation

    @property
    def counts(self) -> Counts:
        """What it did so far."""
        return self._supply.counts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def create(self, spec: Spec) -> Handle:
        """The idle sandbox with the least work left, made complete; or a new one."""
        if self._closed:
            raise self._was_closed()
        self._raise_what_broke()
        return await self._dispatch.ask(spec)

    async def ready(self, box: Handle) -> None:
        """It answered before it was handed out."""
        self.lease(box, Phase.READY)

    async def run(self, box: Handle, action: Action) -> Observation:
        """As the substrate does it; the rollout's own environment comes along with each action."""
        lease = self.lease(box, Phase.RUN)
        action = self.bound(lease, action)
        self._dispatch.keeping.acting += 1
        lease.acting += 1
        try:
            return await self.inner.run(lease.box.handle, action)
        except InputError:
            raise
        except BaseException as error:
            lease.box.doubt(f"an action ended in {type(error).__name__}")
            raise
        finally:
            lease.acting -= 1
            self._dispatch.keeping.acting -= 1
            if self._dispatch.keeping.yielding_since_s is not None:
                self._dispatch.wake.set()

    async def destroy(self, box: Handle) -> None:
        """Take it back: at once for the caller; it is reset and proved, or destroyed, in the background."""
        lease = self._dispatch.leases.get(box)
        if lease is not None and lease.acting:
            lease.box.doubt("it was taken back while it acted")
        self._dispatch.release(box)

    async def close(self) -> None:
        """Destroy every sandbox, held or not, and let go of the substrate. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._dispatch.close(self._was_closed())
            if isinstance(self.inner, Closes):
                await self.inner.close()
        self._raise_what_broke()

    def spent(self) -> Spent:
        """What readiness took and saved so far."""
        counts = self.counts
        return Spent(counts.fill_s + counts.reset_s, counts.kept_s, counts.saved_s)

    def expect(self, spec: Spec, copies: int, *, within_s: float = 600.0) -> None:
        """Announce rollouts: a trainer knows its next step, and they are made ready before it begins."""
        self.schedule([(spec, copies)], within_s=within_s)

    def schedule(self, coming: Iterable[tuple[Spec, int]], *, within_s: float = 600.0) -> None:
        """Announce what comes in which order, each with how many copies: what comes next is made ready first."""
        announced = [(self._dispatch.environments.of(spec), copies) for spec, copies in coming]
        if within_s < 0 or any(copies < 0 for _, copies in announced):
            raise InputError(
                "what is announced comes in 0 or more copies, within 0 or more seconds"
            )
        for turn, (environment, copies) in enumerate(announced):
            self._know(environment)
            now_s = self._supply.now_s()
            self._dispatch.keeping.demand.expect(
                environment.path, copies, now_s, within_s, turn=turn
            )
        self._dispatch.plan_now()

    def pin(self, spec: Spec, copies: int) -> None:
        """Keep that many ready whatever the demand; 0 takes the pin back."""
        environment = self._know(self._dispatch.environments.of(spec))
        self._dispatch.keeping.demand.pin(environment.path, copies, self._supply.now_s())
        self._dispatch.plan_now()

    def lease(self, box: Handle, phase: Phase) -> Lease:
        """Who holds that sandbox; SandboxGone if nobody does any more."""
        lease = self._dispatch.leases.get(box)
        if lease is None:
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        return lease

    def _held(self, box: Handle, phase: Phase = Phase.RUN) -> Handle:
        return self.lease(box, phase).box.handle

    def bound(self, lease: Lease, action: Action) -> Action:
        """The action with what belongs to the rollout, where the substrate has not bound that itself."""
        if lease.spec.env and not self._binds:
            return replace(action, env={**lease.spec.env, **action.env})
        return action

    def got(self, box: Handle) -> Acquired:
        """What that rollout got, and why."""
        return self.lease(box, Phase.READY).acquired

    def room(self) -> int:
        """How many more sandboxes the budget allows at this moment."""
        total = self._supply.total + self._dispatch.held.total()
        return max(0, self.rules.budget.most - total)

    def adopt(self, handle: Handle, like: Lease) -> Handle:
        """Hold a sandbox that a rollout made of its own: it goes with the rollout, and is never used again."""
        return self._dispatch.adopt(handle, like)

    def unfit(self) -> tuple[Unfit, ...]:
        """The last sandboxes that could not be proved fit, and why: destroyed, and handed to nobody."""
        return tuple(self._supply.quarantine)

    def worthy(self) -> tuple[Copy, ...]:
        """The copies worth keeping by the present demand, most worthy first, each with its reason."""
        return self._dispatch.keeping.worthy()

    def status(self) -> dict[str, float]:
        """The numbers of this moment."""
        return {
            "idle": len(self._supply.idle),
            "laying": len(self._supply.laying),
            "making": self._supply.making.total(),
            "resetting": self._supply.renewing.total(),
            "held": self._dispatch.held.total(),
            "leaving": self._supply.leaving,
            "waiting": len(self._dispatch.queue),
            "acting": self._dispatch.keeping.acting,
            "budget": self.rules.budget.most,
            "window": self._supply.window.size,
        }

    def metrics(self) -> str:
        """Counts and status in the text format that Prometheus reads."""
        return exposition(self.counts, self.status(), pool=self.name)

    def explain(self, spec: Spec) -> tuple[str, ...]:
        """What a rollout of that spec would find now, and what each candidate would leave to do."""
        environment = self._dispatch.environments.of(spec)
        path = environment.path
        whole_s = self._dispatch.environments.base_s + whole_price_s(path)
        lines = [f"from nothing: {whole_s:.3g} s for {len(path)} stages"]
        lines += [
            f"{worker.name}: {shared(worker.keys, path)} of {len(path)} stages there, "
            f"{work_left_s(worker.keys, path):.3g} s left"
            for worker in self._supply.idle
        ]
        failing = self._supply.refusal(environment.key)
        if failing is not None:
            lines.append(f"refused for now, because it failed: {failing.error}")
        coming = self._supply.coming[environment.key]
        lines.append(f"{len(self._dispatch.queue)} wait, {coming} of the same on their way")
        return tuple(lines)

    def _know(self, environment: Environment) -> Environment:
        if self._closed:
            raise self._was_closed()
        self._dispatch.keeping.known[environment.key] = environment
        return environment

    def _was_closed(self) -> SubstrateError:
        return SubstrateError("the pool was closed", substrate=self.name, phase=Phase.CREATE)

    def _raise_what_broke(self) -> None:
        """A fault in the background belongs to nobody's call, so it is the next call's."""
        broken, self._supply.broken = self._supply.broken, None
        if broken is not None:
            raise broken
