"""The verbs of the service, once, for every door: each on behalf of an owner, who sees nothing of others'.

A door finds a sandbox with `find` or makes one with `create`, and hands it to the other verbs. Everything raised is
an `ExciseError`, or an `OSError` about a path; `problems.problem_of` tells what it means to a client. A command that
fails is an `Observation`.

    sandbox = await cloud.create("alice", Wanted(template="base", lifetime_s=60), key="idempotency key")
    observation = await cloud.run(sandbox, Action.shell("make test"))
    process = await cloud.start(sandbox, Action.shell("make serve"), tag="server")
    async for piece in process.follow(): ...
    await cloud.files(sandbox).write("/work/x", b"data")
    await cloud.destroy(sandbox)

Everything happens on one event loop. No verb waits for a lock that another sandbox holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from excise.clock import Clock, SystemClock
from excise.errors import (
    ExciseError,
    SandboxGone,
    SubstrateError,
)
from excise.measure.record import Outcome
from excise.service.abilities import must_be, must_live
from excise.service.actions import Actions
from excise.service.builds import Builds
from excise.service.catalogue import Catalogue
from excise.service.census import Census, Page
from excise.service.errors import NAME, Conflict
from excise.service.files import Files
from excise.service.idempotency import Once
from excise.service.journal import Journal
from excise.service.making import Making
from excise.service.marks import ActionTimes
from excise.service.meter import Meter
from excise.service.metrics import Metrics
from excise.service.policy import Policy
from excise.service.processes import Process
from excise.service.rates import Rate
from excise.service.sandbox import NS, AtEnd, Ended, Sandbox, State, Wanted
from excise.service.shells import Shells
from excise.service.taxes import OUTCOMES, Taxes
from excise.substrates.base import Closes, Substrate, Terminal
from excise.types import Action, Observation


class Cloud(Making):
    """All sandboxes of one process. `folder` keeps what outlives a sandbox: uploaded files, state."""

    def __init__(
        self,
        substrate: Substrate,
        folder: Path,
        *,
        policy: Policy | None = None,
        clock: Clock | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.substrate = substrate
        self.policy = policy or Policy()
        self.folder = folder
        self.census = Census()
        self.builds = Builds(substrate, folder / "archives")
        self.templates = Catalogue(self.builds)
        self.metrics = Metrics()
        self.taxes = Taxes(self.metrics)
        self.draining = False
        self._now_ns = (clock or SystemClock()).now_ns
        self._wall_offset_ns = time.time_ns() - self._now_ns()
        self._creates = Rate(self.policy.creates_per_s, self.policy.burst)
        self._meter = Meter(folder, self._now_ns)
        self._coming: Counter[str] = Counter()
        self._journal = journal
        self._once: Once[str] = Once()
        self.actions = Actions(self.run)
        self.shells = Shells(substrate)

    # Time.

    def now_ns(self) -> int:
        """The clock that the marks of sandboxes are on."""
        return self._now_ns()

    def wall_s(self, at_ns: int) -> float:
        """Time of day, in seconds since 1970, of a mark."""
        return (at_ns + self._wall_offset_ns) / NS

    # Sandboxes.

    async def create(self, owner: str, wanted: Wanted, *, key: str | None = None) -> Sandbox:
        """A sandbox that is ready for its first action.

        With an idempotency `key`, asking again gives the same one; asking for something else under it is a
        Conflict. If making it failed, the key is free again.
        """
        if key is None:
            return await self._create(owner, wanted)

        async def made() -> str:
            return (await self._create(owner, wanted)).id

        id_ = await self._once.do((owner, key), wanted, made)
        try:
            return self.census.find(owner, id_)
        except SandboxGone as gone:
            raise Conflict(f"that key was used already: {gone.message}") from gone

    def find(self, owner: str, id_: str) -> Sandbox:
        """By id or name. SandboxGone for what is not there (any more), and equally for what is somebody else's."""
        return self.census.find(owner, id_)

    def by_token(self, id_: str | None, token: str) -> Sandbox:
        """By id and its own token, for protocols whose clients reach into a sandbox with that alone."""
        return self.census.by_token(id_, token)

    def page(
        self,
        owner: str,
        *,
        labels: Mapping[str, str] | None = None,
        states: frozenset[State] | None = None,
        after: int = 0,
        most: int = 100,
    ) -> Page:
        """Those of one owner that live, in the order they were made; `Page.next` is the next `after`, or None."""
        return self.census.page(owner, labels or {}, states, after, most)

    async def destroy(self, sandbox: Sandbox, why: Ended = Ended.DESTROYED) -> None:
        """End it, and all that runs in it. Idempotent."""
        if sandbox.state is State.ENDED:
            return
        self._bury(sandbox, str(why))
        await asyncio.shield(asyncio.create_task(self._end(sandbox, OUTCOMES.get(why, "ok"))))

    def extend(self, sandbox: Sandbox, lifetime_s: float | None) -> None:
        """From now on it has that long to live, be that more or less than before."""
        must_live(sandbox)
        sandbox.deadline_ns = self._deadline_ns(lifetime_s)
        self.census.due(sandbox)

    def renew(self, sandbox: Sandbox) -> None:
        """Somebody still wants it: its lease begins anew. Every use does that, too."""
        must_live(sandbox)
        sandbox.used_ns = self._now_ns()

    def renew_if_there(self, owner: str, id_: str) -> str | None:
        """Renew the lease of one of many; why it is no more, where it is not there."""
        try:
            self.renew(self.find(owner, id_))
        except SandboxGone as gone:
            return gone.message
        return None

    def keep(
        self,
        sandbox: Sandbox,
        *,
        idle_s: float | None = None,
        at_end: AtEnd | None = None,
        at_idle: AtEnd | None = None,
        rest_s: float | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Change the lease or the longest rest (0: none), what happens at the end of it all or of the lease, or the labels."""
        must_live(sandbox)
        if idle_s is not None:
            sandbox.idle_s = idle_s or None
        if at_end is not None:
            self.must_be_able(at_end)
            sandbox.at_end = at_end
        if at_idle is not None:
            self.must_be_able(at_idle)
            sandbox.at_idle = at_idle
        if rest_s is not None:
            sandbox.rest_s = rest_s or None
        if labels is not None:
            sandbox.labels = dict(labels)
        sandbox.used_ns = self._now_ns()
        self.census.due(sandbox)

    # Actions.

    async def run(self, sandbox: Sandbox, action: Action) -> Observation:
        """One command to its end. Cancelling this kills it."""
        if sandbox.state is not State.RUNNING:
            must_be(sandbox, State.RUNNING, "act in")
        sandbox.acting += 1
        sent_ns = self._now_ns()
        try:
            found = await self.substrate.run(sandbox.handle, action)
        except SandboxGone as gone:
            raise await self._lost(sandbox, gone) from gone
        finally:
            sandbox.acting -= 1
            sandbox.used_ns = self._now_ns()
        self.taxes.acted(sandbox, sent_ns, sandbox.used_ns, found)
        return found

    async def start(
        self,
        sandbox: Sandbox,
        action: Action,
        *,
        tag: str | None = None,
        terminal: Terminal | None = None,
        awaited: bool = False,
        input_open: bool = True,
    ) -> Process:
        """One command that goes on by itself: see `Process`. `awaited`: the caller follows it from the start."""
        must_be(sandbox, State.RUNNING, "act in")
        try:
            return await sandbox.processes.start(
                action, tag=tag, terminal=terminal, awaited=awaited, input_open=input_open
            )
        except SandboxGone as gone:
            raise await self._lost(sandbox, gone) from gone

    def files(self, sandbox: Sandbox) -> Files:
        """Its files. Using them counts as using the sandbox."""
        must_be(sandbox, State.RUNNING, "reach into")
        sandbox.used_ns = self._now_ns()
        return Files(self.substrate, sandbox.handle)

    # The end.

    async def close(self) -> None:
        """End every sandbox, and let go of the substrate."""
        self.draining = True
        living = self.census.living()
        await asyncio.gather(*(self.destroy(each, Ended.DRAINED) for each in living))
        if isinstance(self.substrate, Closes):
            await self.substrate.close()

    def _bury(self, sandbox: Sandbox, why: str) -> None:
        now_ns = self._now_ns()
        self.census.ended(sandbox, why, now_ns)
        if self._journal is not None:
            self._journal.ended(sandbox.id, why, self.wall_s(now_ns))

    async def _end(self, sandbox: Sandbox, outcome: Outcome) -> None:
        teardown_ns = self._now_ns()
        try:
            await sandbox.processes.end_all()
            await self.shells.close_all(sandbox)
            await self.substrate.destroy(sandbox.handle)
        except SubstrateError:
            outcome = "substrate_error"
            raise
        finally:
            gone_ns = self._now_ns()
            self.taxes.ended(sandbox, teardown_ns, gone_ns, self.wall_s(gone_ns), outcome)
            sandbox.times = ActionTimes()

    async def _lost(self, sandbox: Sandbox, gone: SandboxGone) -> SandboxGone:
        """The substrate does not have it any more, though nobody ended it here."""
        if sandbox.state is not State.ENDED:
            self._bury(sandbox, f"{Ended.FAILED}: {gone.message}")
            with contextlib.suppress(ExciseError):
                await self._end(sandbox, "substrate_error")
        text = f"sandbox {sandbox.id} has ended: {sandbox.ended}"
        return SandboxGone(text, substrate=NAME, phase=gone.phase)
