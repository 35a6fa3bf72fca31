"""A blocking client over one connected socket: one send and one receive per action, and no thread of its own.

Several threads may have actions under way on one connection. A child of fork cannot use it: it is its parent's.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from excise.agent import files, procedures, transfer
from excise.agent.answers import ActionState, Entry, Hello, Process, Result, Tree
from excise.agent.channel import Channel
from excise.agent.messages import NOTHING, OWN, Exec, Packed
from excise.agent.procedures import PATIENCE_S
from excise.agent.running import Running, Shell
from excise.agent.transfer import Moved


class Connection:
    """Owns `sock`. Closing it tells the agent that nobody is interested any more; a jail ends then."""

    def __init__(self, sock: socket.socket) -> None:
        self._channel = Channel(sock)
        self._mux = self._channel.mux

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Nothing has gone wrong with the connection so far."""
        return not self._mux.failed

    def hello(self) -> Hello:
        """Agree on the version of the protocol."""
        return self._channel.do(procedures.hello(self._mux))

    def ping(self) -> int:
        """The agent's CLOCK_MONOTONIC."""
        return self._channel.do(procedures.ping(self._mux))

    def run(self, what: Exec) -> Result:
        """A command from its start to its end. An interrupt kills its whole tree."""
        return self._channel.do(procedures.run(self._mux, what))

    def start(self, what: Exec, *, stdin_open: bool = False) -> Running:
        """A command whose output comes as it is written; with `stdin_open`, to be written to."""
        return Running(
            self._channel,
            self._channel.do(procedures.start(self._mux, what, stdin_open=stdin_open)),
            pty=what.pty,
        )

    def background(self, what: Exec) -> int:
        """A command that goes on without us; `attach` listens to it."""
        return self._channel.do(procedures.background(self._mux, what))

    def attach(self, action: int) -> Running:
        """What a background action printed, then what it prints, then how it ended."""
        return Running(self._channel, self._channel.do(procedures.attach(self._mux, action)))

    def signal(self, action: int, number: int, *, whole_tree: bool = True) -> None:
        self._channel.do(procedures.signal(self._mux, action, number, whole_tree=whole_tree))

    def actions(self) -> list[ActionState]:
        """Those that are alive, or ended without anybody having read their result."""
        return self._channel.do(procedures.actions(self._mux))

    def processes(self) -> list[Process]:
        return self._channel.do(procedures.processes(self._mux))

    def environment(self) -> dict[str, str]:
        """What the agent was started with: where it is placed, what the platform gives every command."""
        return self._channel.do(procedures.environment(self._mux))

    def thaw(self, now_ns: int, seed: bytes) -> None:
        """Only of a guest's agent: set its clock to this, in ns since 1970, and begin its random numbers anew."""
        self._channel.do(procedures.thaw(self._mux, now_ns, seed))

    def quiet(self, timeout_s: float = PATIENCE_S) -> None:
        """Kill everything in the sandbox but the agent."""
        self._channel.do(procedures.quiet(self._mux, timeout_s))

    def open_shell(
        self,
        *,
        cwd: str = "",
        env: Packed | Mapping[str, str] = NOTHING,
        user: str = "",
    ) -> Shell:
        """A bash that stays: directory, variables and functions survive."""
        what = Exec((), cwd=cwd, env=env, user=user, timeout_s=None)
        return Shell(self._channel, self._channel.do(procedures.open_shell(self._mux, what)))

    def read(self, path: str, offset: int = 0, most: int | None = None) -> bytes:
        return self._channel.do(files.read(self._mux, path, offset, most))

    def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int = 0o644,
        uid: int = OWN,
        gid: int = OWN,
        parents: bool = False,
        in_place: bool = False,
    ) -> None:
        """Make or replace a file, whole or not at all; `in_place` truncates and writes the one there."""
        owner = {"mode": mode, "uid": uid, "gid": gid}
        self._channel.do(
            files.write(self._mux, path, data, parents=parents, in_place=in_place, **owner)
        )

    def stat(self, path: str, *, follow: bool = True) -> Entry:
        return self._channel.do(files.stat(self._mux, path, follow=follow))

    def directory(self, path: str) -> list[Entry]:
        """What is in a directory, sorted by name."""
        return self._channel.do(files.directory(self._mux, path))

    def mkdir(self, path: str, mode: int = 0o755, *, parents: bool = False) -> None:
        self._channel.do(files.mkdir(self._mux, path, mode, parents=parents))

    def remove(self, path: str, *, tree: bool = False) -> None:
        self._channel.do(files.remove(self._mux, path, tree=tree))

    def rename(self, path: str, to: str) -> None:
        self._channel.do(files.rename(self._mux, path, to))

    def symlink(self, target: str, path: str) -> None:
        self._channel.do(files.symlink(self._mux, target, path))

    def chmod(self, path: str, mode: int) -> None:
        self._channel.do(files.chmod(self._mux, path, mode))

    def chown(self, path: str, uid: int, gid: int) -> None:
        self._channel.do(files.chown(self._mux, path, uid, gid))

    def digest(self, path: str) -> Tree:
        """SHA-256 over everything below `path`."""
        return self._channel.do(files.digest(self._mux, path))

    def upload(self, source: Path, to: str, *, uid: int = OWN, gid: int = OWN) -> Moved:
        """Copy a directory of this host into the sandbox."""
        return self._channel.do(transfer.upload(self._mux, source, to, uid, gid))

    def download(self, path: str, target: Path) -> Moved:
        """Copy a directory of the sandbox to this host, into an empty directory."""
        return self._channel.do(transfer.download(self._mux, path, target))

    def close(self) -> None:
        """Let go. In a child of fork only the copy is closed, and the parent's connection lives on."""
        self._channel.close()
