"""How the agent's program comes into a container, decided here and done elsewhere.

An engine on this host gets its file mounted, read-only, which costs nothing. Any other, or one that does not
see this host's files, gets a copy into a volume that goes with the container, so that the container's own root
may be read-only too.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "/.excise"
NAME = "agent"
PROGRAM = f"{FOLDER}/{NAME}"
ROOT = "0:0"
"""Whoever the commands are, the agent is root: only so can it be any user, and be nobody's to kill."""

_UNSEEN = ("bind source path does not exist", "no such file or directory")


def mounted(program: Path) -> dict[str, Any]:
    return {"Type": "bind", "Source": str(program), "Target": PROGRAM, "ReadOnly": True}


def volume() -> dict[str, Any]:
    return {"Type": "volume", "Target": FOLDER}


def archive(program: Path) -> bytes:
    """What is unpacked into the volume."""
    data = program.read_bytes()
    entry = tarfile.TarInfo(NAME)
    entry.size, entry.mode = len(data), 0o555
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as tar:
        tar.addfile(entry, io.BytesIO(data))
    return into.getvalue()


def with_agent(config: Mapping[str, Any], mount: dict[str, Any]) -> dict[str, Any]:
    """The container whose main process is the agent, which ends when nobody is attached any more.

    Its output is the protocol: an engine that logged it would write every byte to disk.
    """
    host = {**config["HostConfig"], "Mounts": [mount], "LogConfig": {"Type": "none"}}
    return {
        **config,
        "Entrypoint": [PROGRAM, "agent", "--stdio"],
        "User": ROOT,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": host,
    }


def is_unseen(message: str, program: Path) -> bool:
    """Whether an engine says that it does not see the file: it is on another machine, or in another tree."""
    return str(program) in message and any(sign in message for sign in _UNSEEN)
