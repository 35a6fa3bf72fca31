"""Actions by the ids that their clients gave them: run once, however often they are asked for, and killed by id.

What came of one is remembered for a while, within bounds, for whoever lost the connection meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from excise.service.errors import Conflict
from excise.service.sandbox import Sandbox
from excise.types import MIB, Action, Observation

MOST_KEPT = 4096
KEPT_BYTES = 64 * MIB
ONE_KEPT_BYTES = MIB // 4


@dataclass(eq=False, slots=True)
class _Asked:
    """One action that is under way, or what came of it."""

    action: Action
    task: asyncio.Task[object] | None
    found: Observation | None = None
    waiting: list[asyncio.Future[Observation]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return 0 if self.found is None else len(self.found.stdout) + len(self.found.stderr)


class Actions:
    """Of all sandboxes; `perform` runs one."""

    def __init__(self, perform: Callable[[Sandbox, Action], Awaitable[Observation]]) -> None:
        self._perform = perform
        self._known: OrderedDict[tuple[str, str], _Asked] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    async def run(self, sandbox: Sandbox, id_: str, action: Action) -> Observation:
        """Run it, or wait for it, or tell what came of it. A failure of the substrate is not remembered."""
        name = (sandbox.id, id_)
        known = self._known.get(name)
        if known is not None:
            return await self._again(known, action)
        asked = self._known[name] = _Asked(action, asyncio.current_task())
        try:
            found = await self._perform(sandbox, action)
        except BaseException as error:
            self._forget(name, asked)
            told = error if isinstance(error, Exception) else Conflict("the action was cancelled")
            for waiter in asked.waiting:
                if not waiter.done():
                    waiter.set_exception(told)
            raise
        asked.task = None
        for waiter in asked.waiting:
            if not waiter.done():
                waiter.set_result(found)
        self._keep(asked, found)
        return found

    async def cancel(self, sandbox: Sandbox, id_: str) -> None:
        """Kill it, and wait until it is dead. Idempotent, and nothing for one that has ended or never was."""
        asked = self._known.get((sandbox.id, id_))
        if asked is None or asked.task is None:
            return
        asked.task.cancel()
        await asyncio.wait([asked.task])

    async def _again(self, known: _Asked, action: Action) -> Observation:
        if known.action != action:
            raise Conflict("that action id was used for another action: take a new one")
        if known.found is not None:
            return known.found
        if known.task is None:
            raise Conflict("that action has ended; what it wrote was too much to be kept")
        waiter: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        known.waiting.append(waiter)
        return await waiter

    def _keep(self, asked: _Asked, found: Observation) -> None:
        if len(found.stdout) + len(found.stderr) <= ONE_KEPT_BYTES:
            asked.found = found
        self._bytes += asked.size
        while len(self._known) > MOST_KEPT or self._bytes > KEPT_BYTES:
            oldest = next((each for each in self._known if self._known[each].task is None), None)
            if oldest is None:
                break
            self._forget(oldest, self._known[oldest])

    def _forget(self, name: tuple[str, str], asked: _Asked) -> None:
        if self._known.get(name) is asked:
            del self._known[name]
            self._bytes -= asked.size
