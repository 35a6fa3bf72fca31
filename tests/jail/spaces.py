"""Name spaces made by hand, in which anybody can check what egress reaches, and servers for it to reach."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from excise.jail import egress

REFUSED, UNREACHABLE = "ConnectionRefusedError", "OSError: Network is unreachable"

CONNECT = """
import json, os, socket, sys
found = []
for host, port in json.loads(sys.argv[1]):
    try:
        with socket.create_connection((host, port), 8) as line:
            found.append("reached " + line.recv(99).decode())
    except ConnectionError as error:
        found.append(type(error).__name__)
    except OSError as error:
        found.append("OSError: " + os.strerror(error.errno or 0))
print(json.dumps(found))
"""
"""Answers for each [host, port] of its argument."""


def refuse(what: str, reason: str) -> None:
    """Skip, unless the environment says that `what` must be."""
    if what in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def need_egress() -> None:
    """The tools, and root for making name spaces that are not one's own."""
    found = egress.availability()
    if not found.usable or os.getuid() != 0:
        refuse("egress", "needs root" if found.usable else str(found))


@dataclass(frozen=True)
class Space:
    """A process in a network name space with only the loopback up, as jails have one."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def inode(self) -> int:
        return Path(f"/proc/{self.pid}/ns/net").stat().st_ino

    def inside(
        self, *command: str, resolv_conf: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command in the name space, with that file for its settings of names."""
        script = 'test -z "$1" || mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", script, "sh", str(resolv_conf or "")]
        words += ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=env)

    def python(self, code: str, *arguments: str, resolv_conf: Path | None = None) -> object:
        """What a script prints, as JSON."""
        words = [sys.executable, "-I", "-c", code, *arguments]
        done = self.inside(*words, resolv_conf=resolv_conf)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def connect(self, *targets: tuple[str, int]) -> list[str]:
        """What came of connecting to each."""
        found = self.python(CONNECT, json.dumps(targets))
        assert isinstance(found, list)
        return found


@contextlib.contextmanager
def a_space() -> Iterator[Space]:
    """Lives for the block."""
    script = "ip link set lo up && echo up && exec sleep 600"
    made = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
    assert made.stdout is not None
    try:
        assert made.stdout.readline() == b"up\n"
        yield Space(made)
    finally:
        made.kill()
        made.wait()
        made.stdout.close()


@contextlib.contextmanager
def a_server(host: str) -> Iterator[int]:
    """Tells everybody its address; yields its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    line, _ = server.accept()
                    with line:
                        line.sendall(host.encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


def an_empty_repository(folder: Path) -> Path:
    """One commit without files, for a git server to serve."""
    for command in (
        ["init", "--quiet", str(folder)],
        ["-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet",
         "--allow-empty", "--message", "one"],
    ):  # fmt: skip
        subprocess.run(["git", *command], check=True)
    (folder / ".git" / "git-daemon-export-ok").touch()
    return folder / ".git"
