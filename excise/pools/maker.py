"""The pool's hands: makes, forks, proves, resets and destroys one sandbox, each within its time.

What is returned has answered its probe: no caller ever holds a sandbox that is not whole, and none is left over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TypeVar

from excise.clock import Clock
from excise.errors import DeadlineExceeded, ExciseError, Phase, SubstrateError
from excise.pools.abilities import Binds, Lays, Staged
from excise.pools.environments import Environment
from excise.session import PROBE
from excise.substrates.base import Forks, Proof, Proves, Resettable, Substrate
from excise.types import Handle, Spec

T = TypeVar("T")


class Maker:
    """One per pool. Holds no state but the substrate; every method may be cancelled.

    `let_go` takes over what failed half way: it is destroyed until it is gone.
    """

    def __init__(
        self, substrate: Substrate, clock: Clock, within_s: float, let_go: Callable[[Handle], None]
    ) -> None:
        self.substrate = substrate
        self._clock = clock
        self._let_go = let_go
        self._within_s = within_s
        # Asking a protocol takes longer than a hand-out should.
        self._staged = substrate if isinstance(substrate, Staged) else None
        self._binds = substrate if isinstance(substrate, Binds) else None
        self._proves = substrate if isinstance(substrate, Proves) else None

    async def make(self, environment: Environment) -> Handle:
        """A new sandbox at the end of that path."""
        [box] = await self._whole(lambda: self._create(environment))
        return box

    async def fork(self, source: Handle, copies: int) -> list[Handle]:
        """New sandboxes from the state of a pristine one."""
        forks = self.substrate
        assert isinstance(forks, Forks)
        return await self._whole(lambda: forks.fork(source, copies))

    async def _create(self, environment: Environment) -> list[Handle]:
        if self._staged is not None:
            return [await self._staged.create_at(environment.spec, environment.depth)]
        return [await self.substrate.create(environment.spec)]

    async def advance(self, box: Handle, spec: Spec) -> None:
        """Add the stages that are missing."""
        assert self._staged is not None
        await self._within(self._staged.advance(box, spec), Phase.CREATE)

    def bind_now(self, box: Handle, spec: Spec) -> bool:
        """Whether what belongs to the rollout is set, or is not to be set by us; `bind` tells what is wrong."""
        if self._binds is None:
            return True
        with contextlib.suppress(ExciseError):
            return self._binds.bind_now(box, spec)
        return False

    async def bind(self, box: Handle, spec: Spec) -> None:
        """Set what belongs to one rollout, where the substrate can; the pool does the rest per action."""
        if self._binds is not None:
            await self._within(self._binds.bind(box, spec), Phase.CREATE)

    async def lay(self, environment: Environment, within_s: float) -> None:
        """Have its stages here, which may take long."""
        lays = self.substrate
        assert isinstance(lays, Lays)
        laying = lays.lay(environment.spec, environment.depth)
        await self._within(laying, Phase.CREATE, within_s)

    async def renew(self, box: Handle, environment: Environment) -> None:
        """Take back what was bound, reset it and prove it; raises if it cannot be proved fit."""
        resettable = self.substrate
        assert isinstance(resettable, Resettable)
        await self.bind(box, environment.spec)
        await self._within(resettable.reset(box), Phase.RESET)
        await self.prove(box, Phase.RESET)

    async def prove(self, box: Handle, phase: Phase = Phase.READY) -> None:
        """Raises unless the sandbox answers, and, where the substrate can tell, is as it was made."""
        await self._within(self._probe(box, phase), phase)
        if self._proves is not None:
            proof = await self._within(self._proves.prove(box), phase)
            if not proof.pristine:
                raise self._unfit(f"not pristine: {_first_of(proof)}", phase)

    async def destroy(self, box: Handle) -> None:
        """Remove it, now."""
        await self._within(self.substrate.destroy(box), Phase.DESTROY)

    async def _whole(
        self, create: Callable[[], Coroutine[object, object, list[Handle]]]
    ) -> list[Handle]:
        made: list[Handle] = []

        async def until_they_answer() -> None:
            made.extend(await create())
            for box in made:
                await self.substrate.ready(box)
                await self._probe(box, Phase.READY)

        try:
            await self._within(until_they_answer(), Phase.CREATE)
        except BaseException:
            for box in made:
                self._let_go(box)
            raise
        return made

    async def _probe(self, box: Handle, phase: Phase) -> None:
        probed = await self.substrate.run(box, PROBE)
        if not probed.ok:
            raise self._unfit(f"the probe ended with {probed.exit_code}", phase)

    def _unfit(self, message: str, phase: Phase) -> SubstrateError:
        return SubstrateError(message, substrate=self.substrate.name, phase=phase, retryable=True)

    async def _within(
        self, work: Coroutine[object, object, T], phase: Phase, within_s: float | None = None
    ) -> T:
        """The work's result, or DeadlineExceeded; the time is the clock's, so that it can be written down."""
        limit_s = self._within_s if within_s is None else within_s
        task = asyncio.ensure_future(work)
        bell = asyncio.ensure_future(self._clock.sleep(limit_s))
        try:
            await asyncio.wait({task, bell}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise DeadlineExceeded(
                    f"no answer within {limit_s:g} s",
                    substrate=self.substrate.name,
                    phase=phase,
                    retryable=True,
                )
            return task.result()
        finally:
            task.cancel()
            bell.cancel()
            await asyncio.gather(task, bell, return_exceptions=True)


def _first_of(proof: Proof) -> str:
    """One thing of each sort that is not as it was made."""
    names = ("files", "processes", "mounts", "env", "limits")
    sorts = {name: getattr(proof, name) for name in names}
    return "; ".join(f"{sort}: {', '.join(found[:3])}" for sort, found in sorts.items() if found)
