"""One kept ssh connection per machine, which brings the agent along and then is the line to it.

It is OpenSSH's own client: it needs no library, and what a user has set up for a cloud (keys in an agent or in hardware,
jump hosts, certificates) works as it stands. A connection costs a key exchange, so there is one, whatever is run: the
agent's protocol shares it among all actions, which ssh's own multiplexing would start a session for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.agent.async_connection import AsyncConnection
from excise.substrates.vm.machine import Console

LET_IN = b"excise-ssh 1\n"
CONNECT_S = 10.0
"""After so long without any answer a connection is given up, and another one tried."""

_TURNED_AWAY = ("permission denied", "too many authentication failures", "system is booting up")


class CutOff(Exception):
    """The server went away, or was never there."""


class TurnedAway(Exception):
    """The server is there and does not let us in (yet)."""


@dataclass(frozen=True, slots=True)
class Account:
    """How one gets in."""

    user: str
    key: Path | None = None
    options: tuple[str, ...] = ()


def ssh_line(account: Account, address: str, port: int, known_hosts: Path, agent: int) -> list[str]:
    """A machine that was made a moment ago cannot be known: its key is taken as it is, once, and held to from then on."""
    words = ["ssh", "-T", "-p", str(port), "-l", account.user]
    settings = {
        "BatchMode": "yes",
        "ConnectTimeout": f"{CONNECT_S:g}",
        "ServerAliveInterval": "15",
        "StrictHostKeyChecking": "accept-new",
        "UserKnownHostsFile": str(known_hosts),
        "LogLevel": "ERROR",
    }
    for name, value in settings.items():
        words += ["-o", f"{name}={value}"]
    if account.key is not None:
        words += ["-i", str(account.key), "-o", "IdentitiesOnly=yes"]
    for option in account.options:
        words += ["-o", option]
    return [*words, "--", address, f"exec sh -c {shlex.quote(_script(account.user, agent))}"]


def _script(user: str, agent: int) -> str:
    """Say that we are in, take the program, become it. `head` reads what it is told to and no byte more."""
    greeting = LET_IN.decode().strip()
    become = 'exec "$d/agent" agent --stdio'
    if user != "root":
        become = 'exec sudo -n "$d/agent" agent --stdio'
    return (
        f'echo {greeting} && d=$(mktemp -d) && head -c {agent} >"$d/agent" && '
        f'chmod 755 "$d" "$d/agent" && {become}'
    )


class Ssh:
    """A connection under way or made. `open` it once; `end` it always."""

    def __init__(self, words: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        hear, say = os.pipe()
        try:
            self._process = subprocess.Popen(
                words,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=say,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(hear)
            raise
        finally:
            theirs.close()
            os.close(say)
        ours.setblocking(False)
        self._line: socket.socket | None = ours
        self._console = Console(hear)

    @property
    def complaint(self) -> str:
        return self._console.tail.replace("\r", "")

    async def let_in(self) -> None:
        """Return when the other end says so."""
        line = self._line
        assert line is not None
        loop = asyncio.get_running_loop()
        said = b""
        while not said.endswith(LET_IN):  # whatever a login prints comes before it
            more = await loop.sock_recv(line, 1)
            if not more:
                await asyncio.to_thread(self._process.wait)
                self._console.listen()
                raise _why(self.complaint)
            said += more

    async def agent(self, program: bytes) -> AsyncConnection:
        """Send the program, and speak to it."""
        line = self._line
        assert line is not None
        try:
            await asyncio.get_running_loop().sock_sendall(line, program)
        except OSError as error:
            raise CutOff(self.complaint or str(error)) from error
        self._line = None
        return await AsyncConnection.over(line)

    async def end(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        self._console.close()


def _why(complaint: str) -> Exception:
    if any(sign in complaint.lower() for sign in _TURNED_AWAY):
        return TurnedAway(complaint)
    return CutOff(complaint or "the connection was closed")
