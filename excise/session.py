"""One trajectory's hold on one sandbox: the only stopwatch, the only keeper of the lifecycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from excise.clock import Clock, SystemClock
from excise.errors import DeadlineExceeded, InputError, LifecycleError, Phase, SubstrateError
from excise.lifecycle import Event, State, step
from excise.noting import hold
from excise.substrates.base import Shell, Shells, Substrate
from excise.tax.marks import ActionMarks, Marks
from excise.types import Action, Handle, Observation, Spec

PROBE = Action(argv=("true",))
"""Ready means: this was run and returned 0. `create` having returned proves nothing."""


class Session:
    """`async with Session(substrate, spec) as s: obs = await s.act(action)`.

    Entering creates the sandbox and waits until its first command was answered; leaving destroys it,
    whatever happened. `due_ns` is when the trial was due (open loop); without it, it is due on entry.
    `end_within_s` bounds the destruction, which nothing else interrupts.
    """

    def __init__(
        self,
        substrate: Substrate,
        spec: Spec | None = None,
        *,
        clock: Clock | None = None,
        due_ns: int | None = None,
        end_within_s: float | None = None,
    ) -> None:
        self.substrate = substrate
        self.spec = spec or Spec()
        self.state = State.NEW
        self.box: Handle | None = None
        self._now = (clock or SystemClock()).now_ns
        self._due_ns = due_ns
        self._end_within_s = end_within_s
        self._at: dict[str, int] = {}
        self._actions: list[ActionMarks] = []
        self._set_up: list[ActionMarks] = []
        self._acts_into = self._actions
        self._shell: Shell | None = None

    def __repr__(self) -> str:
        return f"<Session {self.substrate.name} {self.state} after {len(self._actions)} actions>"

    async def __aenter__(self) -> Self:
        self._at["requested"] = self._now()
        self._at["due"] = self._at["requested"] if self._due_ns is None else self._due_ns
        hold(self._note)
        try:
            if self._due_ns is not None:
                # All that are due have asked before a driver serves the first of them.
                await asyncio.sleep(0)
            self.box = await self.substrate.create(self.spec)
            self._at["created"] = self._now()
            self.state = step(self.state, Event.CREATE)
            await self.substrate.ready(self.box)
            probed = await self.substrate.run(self.box, PROBE)
            self._at["ready"] = self._at["set_up"] = self._now()
            if not probed.ok:
                raise SubstrateError(
                    f"the probe `true` ended with {probed.exit_code}: {probed.text[:200]!r}",
                    substrate=self.substrate.name,
                    phase=Phase.READY,
                )
            self.state = step(self.state, Event.READY)
        except BaseException:
            self.state = step(self.state, Event.FAIL)
            await self._end_despite_cancellation()
            raise
        finally:
            hold(None)
        return self

    def _note(self, moment: str) -> None:
        """What the driver saw of the creation: kept beside the marks, which it does not move."""
        self._at.setdefault(moment, self._now())

    async def act(self, action: Action) -> Observation:
        """Run one action and mark when it was sent and when its whole observation was here."""
        return await self._marked(lambda box: self.substrate.run(box, action))

    async def open_shell(self) -> None:
        """Open the persistent shell that `tell` speaks to; belongs into the set-up."""
        if not isinstance(self.substrate, Shells):
            raise InputError(f"{self.substrate.name} has no persistent shells")
        if self.box is None:
            raise LifecycleError("cannot open a shell before the session was entered")
        self._shell = await self.substrate.open_shell(self.box)

    async def tell(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        """Like `act`, in the persistent shell: directory and variables survive."""
        shell = self._shell
        if shell is None:
            raise LifecycleError("no persistent shell: call open_shell first")
        return await self._marked(lambda _: shell.run(script, timeout_s=timeout_s))

    async def _marked(self, perform: Callable[[Handle], Awaitable[Observation]]) -> Observation:
        if self.box is None:
            raise LifecycleError("cannot act before the session was entered")
        self.state = step(self.state, Event.ACT)
        sent = self._now()
        try:
            observation = await perform(self.box)
        except BaseException:
            self.state = step(self.state, Event.FAIL)
            raise
        received = self._now()
        self.state = step(self.state, Event.OBSERVE)
        self._acts_into.append(ActionMarks(sent, received, observation.inside_ns))
        return observation

    @asynccontextmanager
    async def setting_up(self) -> AsyncIterator[Self]:
        """Actions in here are set-up (clone, install, upload): the S of the decomposition."""
        if self._actions:
            raise LifecycleError("set-up comes before the first action")
        self._acts_into = self._set_up
        try:
            yield self
        finally:
            self._acts_into = self._actions
            self._at["set_up"] = self._now()

    async def end(self) -> None:
        """Destroy the sandbox now; leaving the context does it otherwise. Idempotent."""
        if self.state in (State.NEW, State.GONE):
            return
        self._at["teardown"] = self._now()
        if self.box is not None:
            try:
                await self._destroy_in_time(self.box)
            except BaseException:
                self.state = State.BROKEN
                raise
        self._at["gone"] = self._now()
        self.state = step(self.state, Event.DESTROY)

    async def _destroy_in_time(self, box: Handle) -> None:
        try:
            async with asyncio.timeout(self._end_within_s) as bound:
                await self.substrate.destroy(box)
        except TimeoutError as error:
            if not bound.expired():
                raise
            raise DeadlineExceeded(
                f"no answer within {self._end_within_s} s",
                substrate=self.substrate.name,
                phase=Phase.DESTROY,
            ) from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end_despite_cancellation()

    async def _end_despite_cancellation(self) -> None:
        ending = asyncio.ensure_future(self.end())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
            except SubstrateError:
                break
        if cancelled is not None:
            raise cancelled
        ending.result()

    @property
    def taken(self) -> dict[str, int]:
        """The marks taken so far, by name: what there is to record of a session that failed."""
        return dict(self._at)

    @property
    def acted(self) -> tuple[tuple[ActionMarks, ...], tuple[ActionMarks, ...]]:
        """The set-up actions and the actions that were answered so far."""
        return tuple(self._set_up), tuple(self._actions)

    @property
    def marks(self) -> Marks:
        """All marks, once the session has ended well."""
        at = self._at
        if self.state is not State.GONE or "set_up" not in at:
            raise LifecycleError(
                f"the marks are complete only after the end, not while {self.state}"
            )
        return Marks.of(at, self._actions, self._set_up)
