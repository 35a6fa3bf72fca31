"""Sessions where the substrate has persistent shells but hands out nothing while a command runs.

The commands of a session come one after the other, and what each wrote is there when it has ended.
"""

from __future__ import annotations

import asyncio

from excise.errors import ExciseError
from excise.service.cloud import Cloud
from excise.service.daytona.commands import ENDED, Command, Commands
from excise.service.errors import Unsupported
from excise.service.sandbox import Sandbox


class PlainSession(Commands):
    """One shell of the substrate's own, opened with the first command."""

    idle = False
    """It is never laid to rest."""

    def __init__(self, id_: str, cloud: Cloud, box: Sandbox) -> None:
        super().__init__(id_)
        self._cloud = cloud
        self._box = box
        self._shell: str | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, text: str, before: str = "") -> Command:
        """Hand a command to the shell; it is under way, or waits for its turn, when this returns."""
        self.must_be_open()
        if self._shell is None:
            self._shell = await self._cloud.shells.open(self._box)
        command = Command(text)
        self.keep(command)
        task = asyncio.create_task(self._run(self._shell, command, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return command

    async def write(self, data: bytes) -> None:
        """There is nothing that its commands could read."""
        del data
        text = "a session on this substrate takes no input: serve one that streams, as the jail"
        raise Unsupported(text)

    async def rest(self) -> bool:
        return False

    async def close(self) -> None:
        """Idempotent."""
        self.closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        shell, self._shell = self._shell, None
        if shell is not None:
            await self._cloud.shells.close(self._box, shell)

    async def _run(self, shell: str, command: Command, before: str) -> None:
        async with self._turn:
            code, error = ENDED, None
            try:
                found = await self._cloud.shells.run(self._box, shell, before + command.text, None)
                command.tape.add(1, found.stdout)
                command.tape.add(2, found.stderr)
                code = found.exit_code
            except ExciseError as failed:
                error = self.broken = failed
            finally:
                command.end(code, error)
