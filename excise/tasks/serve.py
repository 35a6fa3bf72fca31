"""Serves prepared repositories over git's own transport, by the `git-daemon` program itself."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from excise.errors import InputError, TaskError
from excise.tasks import git

_ATTEMPTS = 5
_START_S = 10.0

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    raise SystemExit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""PR_SET_PDEATHSIG survives execv, so what runs in the end is git-daemon and nothing around it."""


class GitServer:
    """`async with GitServer({"attrs-1417": prepared.git_dir}) as server: server.url("attrs-1417")`.

    It serves these repositories and no other, read-only, and dies when the process that started it
    does, however that ends.
    """

    def __init__(self, repositories: Mapping[str, Path], *, host: str = "127.0.0.1") -> None:
        self.host = host
        self.port: int | None = None
        self._repositories = {name: path.resolve() for name, path in repositories.items()}
        self._daemon: asyncio.subprocess.Process | None = None

    def url(self, name: str, host: str | None = None) -> str:
        """Where to clone from; `host` is the server's address as a sandbox sees it."""
        if name not in self._repositories:
            raise InputError(f"{name!r} is not served; served: {', '.join(self._repositories)}")
        if self.port is None:
            raise TaskError("the git server is not running")
        place = quote(str(self._repositories[name]))
        return f"git://{host or self.host}:{self.port}{place}"

    async def __aenter__(self) -> Self:
        program = Path(git.text("--exec-path", cwd=Path.cwd())) / "git-daemon"
        if not program.exists():
            raise TaskError(f"{program} does not exist; install the whole of git")
        for _ in range(_ATTEMPTS):
            port = _free_port(self.host)
            self._daemon = await self._start(program, port)
            if await _listens(self._daemon, self.host, port):
                self.port = port
                return self
            await self._stop()
        raise TaskError(f"git-daemon does not start on {self.host}")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def _start(self, program: Path, port: int) -> asyncio.subprocess.Process:
        options = (f"--listen={self.host}", f"--port={port}", "--reuseaddr")
        places = map(str, self._repositories.values())
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), str(program)),
            *options,
            *places,
            env=git.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def _stop(self) -> None:
        daemon, self._daemon, self.port = self._daemon, None, None
        if daemon is not None and daemon.returncode is None:
            daemon.kill()
        if daemon is not None:
            await daemon.wait()


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


async def _listens(daemon: asyncio.subprocess.Process, host: str, port: int) -> bool:
    """Wait until the daemon accepts connections; False if it ends instead."""
    address = "127.0.0.1" if host in {"0.0.0.0", ""} else host  # noqa: S104  (comparing, not binding)
    clock = asyncio.get_running_loop().time
    deadline = clock() + _START_S
    while daemon.returncode is None and clock() < deadline:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError:
            await asyncio.sleep(0.005)
            continue
        writer.close()
        await writer.wait_closed()
        return daemon.returncode is None
    return False
