"""What a check needs: a sandbox, a way to run in it, and a way to say what was expected.

Checks look at a sandbox only through its substrate, so that they hold for remote ones too. No check
asserts how long anything took; `HANG_S` is only there so that a broken substrate cannot stop the suite.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from excise.substrates.base import Substrate
from excise.types import Action, Handle, Observation, Spec

HANG_S = 45.0


@dataclass(frozen=True, slots=True)
class Check:
    """One promise of the contract. `needs` is the optional ability that it is about."""

    name: str
    promise: str
    holds: Callable[[Rig], Awaitable[None]] = field(repr=False)
    needs: type | None = None


CHECKS: dict[str, Check] = {}
"""All checks by name, filled by the modules that define them."""


def check(
    needs: Any = None,
) -> Callable[[Callable[[Rig], Awaitable[None]]], Callable[[Rig], Awaitable[None]]]:
    """Enter a function into the table; its docstring is the promise."""

    def enter(holds: Callable[[Rig], Awaitable[None]]) -> Callable[[Rig], Awaitable[None]]:
        name = getattr(holds, "__name__", "")
        CHECKS[name] = Check(name, holds.__doc__ or "", holds, needs)
        return holds

    return enter


class Rig:
    """A substrate under examination and the spec its sandboxes are made with."""

    def __init__(self, substrate: Any, spec: Spec) -> None:
        self.substrate = substrate
        self.spec = spec

    @asynccontextmanager
    async def box(self, spec: Spec | None = None) -> AsyncIterator[Box]:
        """A sandbox that is ready, destroyed afterwards."""
        substrate: Substrate = self.substrate
        handle = await substrate.create(spec or self.spec)
        try:
            await substrate.ready(handle)
            yield Box(self.substrate, handle)
        finally:
            await substrate.destroy(handle)


class Box:
    """One sandbox, with short ways to run in it."""

    def __init__(self, substrate: Any, handle: Handle) -> None:
        self.substrate = substrate
        self.handle = handle

    async def act(self, action: Action) -> Observation:
        substrate: Substrate = self.substrate
        return await substrate.run(self.handle, action)

    async def sh(self, script: str, **more: Any) -> Observation:
        return await self.act(Action.shell(script, **more))

    @asynccontextmanager
    async def acting(self, script: str) -> AsyncIterator[asyncio.Task[Observation]]:
        """A script that runs meanwhile; whatever becomes of it, it is cancelled and awaited at the end."""
        task = asyncio.create_task(self.sh(script, timeout_s=None))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def says(self, script: str, expected: str, **more: Any) -> None:
        """The script must succeed and print exactly this."""
        observation = await self.sh(script, **more)
        expect(observation.exit_code, 0, f"exit code of {script!r} ({observation.text[:200]!r})")
        expect(observation.stdout, expected.encode(), f"output of {script!r}")

    async def wait_for_heart(self, file: str) -> None:
        await self.says(f"until [ -s {file} ]; do sleep 0.02; done; echo beats", "beats\n")

    async def has_stopped(self, *files: str) -> None:
        """A heart has stopped if its file does not grow any more; the clock is the sandbox's own."""
        beats = f"$(cat {' '.join(files)} | wc -c)"
        found = await self.sh(f"a={beats}; sleep 0.5; b={beats}; [ $a = $b ] && echo still")
        what = f"a process that should be dead writes into {' or '.join(files)}"
        expect(found.stdout, b"still\n", what)


def heart(file: str, prefix: str = "") -> str:
    """A line of script that beats into `file` in the background; it stops by itself after a while."""
    return f"{prefix} bash -c 'for i in $(seq 600); do echo x >> {file}; sleep 0.05; done' &\n"


def expect(found: object, wanted: object, what: str) -> None:
    """Equality, with a message that fits on a screen. Holds under `python -O` too."""
    if found != wanted:
        fail(f"{what}: expected {_short(wanted)}, found {_short(found)}")


def fail(message: str) -> NoReturn:
    raise AssertionError(message)


async def hold(rig: Rig, one: Check) -> None:
    """Run one check under the hang guard."""
    try:
        async with asyncio.timeout(HANG_S):
            await one.holds(rig)
    except TimeoutError:
        fail(f"{one.name} did not end within {HANG_S:g} s")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:120]}... ({len(text)} characters)"
