"""One way to call every version of the Daytona SDK, blocking and asynchronous, that writes down what was called.

Runs with the SDK and the standard library alone, because `make sdk-matrix` runs it in the environments of others.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

SERVICES = frozenset({
    *("Daytona", "Sandbox", "Process", "FileSystem", "Git", "CodeInterpreter", "PtyHandle"),
    *("SnapshotService", "VolumeService", "SecretService", "WarmPoolService", "LspServer", "ComputerUse"),
})  # fmt: skip
"""The classes whose methods are the SDK."""

NOT_OFFERED = frozenset({
    *("model_post_init", "wait_for_resize_complete", "process_image_context"),
    *("get_user_root_dir", "workspace_symbols"),
})  # fmt: skip
"""Parts of other methods, and what the SDK itself calls deprecated."""


class Absent(Exception):
    """This version of the SDK has no such thing."""


Exercise = Callable[["Called", "Called"], Awaitable[None]]


@dataclass
class Notes:
    """What was called: methods that answered, and what the service said no to."""

    works: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


class Called:
    """An object of the SDK whose methods are awaited, whichever kind it is."""

    def __init__(self, inner: Any, notes: Notes) -> None:
        self.inner = inner
        self.notes = notes

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self.inner, name)
        except AttributeError as error:
            raise Absent(f"{named(self.inner)}.{name}") from error
        if not inspect.isroutine(value) and not isinstance(value, functools.partial):
            return self._outer(value)
        return self._calling(f"{named(self.inner)}.{name}", value)

    def _calling(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple(arg.inner if isinstance(arg, Called) else arg for arg in args)
            try:
                inspect.signature(method).bind(*args, **kwargs)
            except TypeError as error:
                raise Absent(f"{name} takes no {', '.join(kwargs) or 'such arguments'}") from error
            except ValueError:
                pass
            if inspect.iscoroutinefunction(method):
                found = await method(*args, **kwargs)
            else:
                found = await asyncio.to_thread(method, *args, **kwargs)
                found = await found if inspect.isawaitable(found) else found
            found = await everything(found)
            self.notes.works.add(name)
            return self._outer(found)

        return call

    def _outer(self, value: Any) -> Any:
        known = named(value) in SERVICES and type(value).__module__.startswith("daytona")
        return Called(value, self.notes) if known else value


def named(value: object) -> str:
    """The class of a thing, the same for both kinds."""
    return type(value).__name__.removeprefix("Async")


async def everything(found: Any) -> Any:
    """What an iterator gives, as a list."""
    if hasattr(found, "__anext__"):
        return [each async for each in found]
    if hasattr(found, "__next__"):
        return await asyncio.to_thread(list, found)
    return found


EXERCISES: dict[str, list[Exercise]] = {}
"""By group."""


def exercise(group: str) -> Callable[[Exercise], Exercise]:
    """Enters a function that calls some methods and checks what comes of it."""

    def enter(function: Exercise) -> Exercise:
        EXERCISES.setdefault(group, []).append(function)
        return function

    return enter


async def fails(call: Callable[[], Any], kind: str, said: str = "") -> Any:
    """The SDK raises this error of its own. Old versions have fewer kinds."""
    import daytona

    base = daytona.DaytonaError
    kinds = getattr(daytona, kind, None) or getattr(daytona.common.errors, kind, base)
    try:
        await call()
    except kinds as raised:
        error = raised
    else:
        raise AssertionError(f"no {kind}")
    assert said.lower() in str(error).lower(), str(error)
    return error


async def in_session(box: Called, session: str, command: str, *, run_async: bool = False) -> Any:
    from daytona import SessionExecuteRequest

    request = SessionExecuteRequest(command=command, run_async=run_async)
    return await box.process.execute_session_command(session, request)


def is_blocking(box: Called) -> bool:
    return not type(box.inner).__name__.startswith("Async")
