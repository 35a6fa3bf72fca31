"""Builds what environments stand on before any sandbox is made there: once for all who want it.

A build takes seconds to minutes and no sandbox. So it has no place in the window of creations and none in the
budget, and an environment that takes long, or cannot be built, keeps nobody from another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from excise.pools.environments import Environment, Environments
from excise.pools.maker import Maker

Ended = Callable[[Environment, Exception | None, float], None]


class Laying:
    """`ended` is told of every build: the environment, the error if there was one, and when it was begun."""

    def __init__(
        self,
        maker: Maker,
        environments: Environments,
        within_s: float,
        now_s: Callable[[], float],
        ended: Ended,
    ) -> None:
        self._maker = maker
        self._environments = environments
        self._within_s = within_s
        self._now_s = now_s
        self._ended = ended
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def wanted(self, environment: Environment) -> bool:
        """Whether something is to be built there first, or being built."""
        return environment.key in self._tasks or self._environments.missing(environment)

    def begin(self, environment: Environment) -> None:
        """Once, however often it is said."""
        key = environment.key
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._lay(environment))

    async def close(self) -> None:
        """Nobody waits for any of it any more; builders are let finish what they began."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def _lay(self, environment: Environment) -> None:
        begun_s = self._now_s()
        error: Exception | None = None
        try:
            await self._maker.lay(environment, self._within_s)
        except Exception as failure:  # noqa: BLE001 - `ended` keeps it, and tells whoever waits
            error = failure
        finally:
            self._tasks.pop(environment.key, None)
        self._ended(environment, error, begun_s)
