"""Persistent shells by id: their scripts come one after the other, and they end with their sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field

from excise.errors import ExciseError, Phase, SandboxGone
from excise.service.abilities import must_be
from excise.service.errors import NAME, Refused, Unsupported
from excise.service.sandbox import Sandbox, State
from excise.substrates.base import Shell, Substrate
from excise.substrates.base import Shells as OpensShells
from excise.types import Observation

MOST = 64
"""Shells of one sandbox."""


@dataclass(eq=False, slots=True)
class _Opened:
    shell: Shell
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Shells:
    """Of all sandboxes of one cloud."""

    def __init__(self, substrate: Substrate) -> None:
        self._substrate = substrate
        self._opened: dict[str, dict[str, _Opened]] = {}

    async def open(self, sandbox: Sandbox) -> str:
        """A new one; its id."""
        must_be(sandbox, State.RUNNING, "open a shell in")
        if not isinstance(self._substrate, OpensShells):
            raise Unsupported(f"{self._substrate.name} has no persistent shells")
        mine = self._opened.setdefault(sandbox.id, {})
        if len(mine) >= MOST:
            text = f"{MOST} shells are open in this sandbox; close some first"
            raise Refused(text, phase=Phase.RUN, retry_after_s=1.0, theirs=True)
        id_ = secrets.token_hex(8)
        mine[id_] = _Opened(await self._substrate.open_shell(sandbox.handle))
        return id_

    async def run(
        self, sandbox: Sandbox, id_: str, script: str, timeout_s: float | None
    ) -> Observation:
        must_be(sandbox, State.RUNNING, "act in")
        opened = self._find(sandbox, id_)
        sandbox.acting += 1
        try:
            async with opened.turn:
                return await opened.shell.run(script, timeout_s=timeout_s)
        finally:
            sandbox.acting -= 1

    async def close(self, sandbox: Sandbox, id_: str) -> None:
        """Idempotent."""
        opened = self._opened.get(sandbox.id, {}).pop(id_, None)
        if opened is not None:
            await opened.shell.close()

    async def close_all(self, sandbox: Sandbox) -> None:
        """Its sandbox ends."""
        for opened in self._opened.pop(sandbox.id, {}).values():
            with contextlib.suppress(ExciseError):
                await opened.shell.close()

    def _find(self, sandbox: Sandbox, id_: str) -> _Opened:
        opened = self._opened.get(sandbox.id, {}).get(id_)
        if opened is None:
            text = f"there is no shell {id_[:40]} in this sandbox"
            raise SandboxGone(text, substrate=NAME, phase=Phase.RUN)
        return opened
