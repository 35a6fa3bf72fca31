"""One way to call every version of the E2B SDK, blocking and asynchronous, in environments that have nothing else."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import e2b


class Absent(Exception):
    """This version of the SDK has no such thing."""


@dataclass(frozen=True)
class Sdk:
    """One of its two kinds. `await sdk(method, ...)` calls either."""

    blocking: bool

    @property
    def sandbox(self) -> Any:
        return e2b.Sandbox if self.blocking else e2b.AsyncSandbox

    @property
    def template(self) -> Any:
        name = "Template" if self.blocking else "AsyncTemplate"
        if not hasattr(e2b, name):
            raise Absent(name)
        return getattr(e2b, name)

    async def __call__(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        takes = inspect.signature(method).parameters
        unknown = named.keys() - takes.keys()
        if unknown and all(each.kind is not each.VAR_KEYWORD for each in takes.values()):
            raise Absent(f"{method.__qualname__} takes no {', '.join(sorted(unknown))}")
        if self.blocking:
            return await asyncio.to_thread(method, *args, **named)
        found = method(*args, **named)
        return await found if inspect.isawaitable(found) else found

    async def fails(self, kind: str, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """The SDK raises this error of its own."""
        expected = getattr(e2b, kind)
        try:
            await self(method, *args, **named)
        except expected as error:
            return error
        raise AssertionError(f"no {kind}")

    async def pages(self, paginator: Any) -> list[list[Any]]:
        """All that a list has, page by page."""
        found = []
        while paginator.has_next:
            found.append(await self(paginator.next_items))
        return found


def member(of: Any, name: str) -> Any:
    """A part that not every version has."""
    if not hasattr(of, name):
        raise Absent(f"{type(of).__name__}.{name}")
    return getattr(of, name)


Exercise = Callable[[Sdk, Any], Awaitable[None]]
EXERCISES: dict[str, Exercise] = {}
"""By name, in the order of the tables."""


def exercise(function: Exercise) -> Exercise:
    """Enters a function that is given the SDK and a sandbox, uses some of it, and checks what comes of it."""
    EXERCISES[function.__name__] = function
    return function
