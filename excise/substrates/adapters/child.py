"""The process that drives a tool: started on first use, asked over two pipes, ended with its owner."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from excise.errors import Phase, SubstrateError

DRIVER = Path(__file__).with_name("driver.py")
ANSWER_LIMIT_BYTES = 1 << 27
PYTHON = "EXCISE_HARNESSES"
"""The interpreter in which the tools are installed."""


QUIET = {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_GLOBAL_CONFIG_DIR": f"{tempfile.gettempdir()}/excise-{os.getuid()}/mini-swe-agent",
}
"""mini-swe-agent prints a greeting and makes a folder wherever its user keeps settings."""


class ToolFailed(Exception):
    """What a tool raised, in one line."""


class Child:
    """One driver process for all sandboxes of a substrate, so that a tool's imports are paid once."""

    def __init__(self, name: str, python: str, env: Mapping[str, str]) -> None:
        self._name = name
        self._python = python
        self._env = {**os.environ, **QUIET, **env}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def ask(self, do: str, phase: Phase, **what: object) -> dict[str, Any]:
        """The answer; ToolFailed where the tool said no, SubstrateError where there is no tool any more."""
        process = await self._started()
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"id": number, "do": do, **what}).encode() + b"\n")
            said = await answer
        except (ConnectionError, EOFError) as error:
            text = f"the driver of {self._name} has ended"
            raise SubstrateError(text, substrate=self._name, phase=phase) from error
        finally:
            self._waiting.pop(number, None)
        if "error" in said:
            raise ToolFailed(said["error"])
        return said

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _started(self) -> Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    self._python, str(DRIVER), stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL,
                    env=self._env, limit=ANSWER_LIMIT_BYTES,
                )  # fmt: skip
                self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            said = json.loads(line)
            waiting = self._waiting.get(said["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(said)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(EOFError())


def output_of(said: Mapping[str, Any]) -> bytes:
    return base64.b64decode(said.get("output", ""))
