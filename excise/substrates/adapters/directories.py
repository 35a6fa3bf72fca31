"""Directories of this host that a tool acts in: the bare process's and bubblewrap's, which make and remove them."""

from __future__ import annotations

import os
import posixpath
import tempfile
from pathlib import Path

from excise.errors import Phase, SubstrateError
from excise.substrates.adapters.acting import act
from excise.substrates.adapters.child import Child, ToolFailed
from excise.substrates.local.substrate import Directories
from excise.substrates.script import check
from excise.types import Action, Handle, Isolation, Observation, Spec


class AdaptedDirectories(Directories):
    """`local@TOOL`, `bwrap@TOOL`."""

    def __init__(self, below: str, tool: str, python: str) -> None:
        self.name = f"{below}@{tool}"
        self.isolation = Isolation.NAMESPACES if below == "bwrap" else Isolation.NONE
        super().__init__(Path(tempfile.gettempdir()) / f"excise-{os.getuid()}" / self.name)
        self._tool = tool
        self._child = Child(self.name, python, {})

    async def create(self, spec: Spec) -> Handle:
        box = await super().create(spec)
        sandbox = self._find(box, Phase.CREATE)
        directory = {"root": sandbox.root, "work": sandbox.work, "env": dict(sandbox.env)}
        try:
            await self._child.ask(
                "open", Phase.CREATE, box=box, tool=self.name, directory=directory
            )
        except ToolFailed as error:
            await super().destroy(box)
            raise SubstrateError(str(error), substrate=self.name, phase=Phase.CREATE) from error
        return box

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        sandbox = self._find(box, Phase.RUN)
        cwd = posixpath.normpath(posixpath.join(sandbox.work, action.cwd or ""))
        return await act(self._child, self.name, box, action, cwd)

    async def destroy(self, box: Handle) -> None:
        try:
            if box in self._known:
                await self._child.ask("close", Phase.DESTROY, box=box)
        except ToolFailed as error:
            raise SubstrateError(str(error), substrate=self.name, phase=Phase.DESTROY) from error
        finally:
            await super().destroy(box)

    async def describe(self) -> dict[str, str]:
        return {**await super().describe(), "adapter": self._tool}

    async def close(self) -> None:
        await self._child.close()
        await super().close()
