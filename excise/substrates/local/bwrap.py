"""Bubblewrap around every command: the lightweight reference that people already use for agents on their own machine.

A sandbox is the bare process's: a directory. Each action is one `bwrap` of its own in name spaces of its own, so
nothing that an action started outlives it, and there is nothing to keep. The host's files are read-only to it,
`/tmp` and the directory are its own, and other sandboxes' directories are not there.

Covered: processes of others are out of sight; no network unless the spec gives egress; every process of an
action is dead when it ends. Not covered: it reads what you can read; of the limits only `cpuset` is honoured;
background processes do not survive; nothing inside times commands.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.local.directory import PARTS, PATH, Sandbox
from excise.substrates.local.process import Command
from excise.substrates.local.substrate import Directories
from excise.types import Action, Allow, Fault, Handle, Isolation, Observation, Spec

STATE = Path("/var/tmp")  # noqa: S108  # below it; in /tmp the sandboxes' own would lie on top of it
_INSTALL = "apt-get install -y bubblewrap"

_FAULTS = (
    (re.compile(rb"bwrap: Can't chdir to "), Fault.MISSING_CWD, 126),
    (re.compile(rb"bwrap: execvp .*: (No such file|Not a directory)"), Fault.MISSING_PROGRAM, 127),
    (re.compile(rb"bwrap: execvp "), Fault.NOT_EXECUTABLE, 126),
)


class Bwrap(Directories):
    """The bare process, with bubblewrap around each command."""

    name = "bwrap"
    isolation = Isolation.NAMESPACES

    def __init__(self, state: Path | None = None) -> None:
        super().__init__(state or STATE / f"excise-{os.getuid()}" / self.name)

    async def create(self, spec: Spec) -> Handle:
        if isinstance(spec.egress, Allow):
            raise InputError("bwrap cannot limit egress to a list: take NONE or FULL, or the jail")
        return await super().create(spec)

    async def run(self, box: Handle, action: Action) -> Observation:
        seen = await super().run(box, action)
        if seen.exit_code == 1 and seen.stderr.startswith(b"bwrap: "):
            for sign, fault, code in _FAULTS:
                if sign.match(seen.stderr):
                    return replace(seen, exit_code=code, fault=fault, inside_ns=None)
        return replace(seen, inside_ns=None)

    async def describe(self) -> dict[str, str]:
        version = (await asyncio.to_thread(_ask, "--version")).stdout.strip()
        return {
            **await super().describe(),
            "egress": "none or all",
            "start": f"{version} per action",
        }

    def _command(self, sandbox: Sandbox, command: Command) -> Command:
        around = arguments(sandbox, str(self._state), command.cwd)
        return replace(command, argv=(*around, *command.argv), cwd="/")


def arguments(sandbox: Sandbox, state: str, cwd: str) -> tuple[str, ...]:
    """What stands before the command."""
    own = (
        word
        for part in PARTS
        for word in ("--bind", f"{sandbox.root}/{part}", f"{sandbox.root}/{part}")
    )
    return (
        "bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        *(() if sandbox.network else ("--unshare-net",)),
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        "--bind", f"{sandbox.root}/tmp", "/tmp",  # noqa: S108
        "--tmpfs", state, "--ro-bind", sandbox.root, sandbox.root, *own,
        "--chdir", cwd, "--",
    )  # fmt: skip


def open_substrate(**options: str) -> Bwrap:
    """`state=DIR`: where the sandboxes' directories are made."""
    state = options.pop("state", None)
    if options:
        raise InputError(f"bwrap has no option {', '.join(sorted(options))}; it has: state")
    return Bwrap(None if state is None else Path(state))


async def availability(**options: str) -> Availability:
    """Whether bubblewrap is there and the kernel lets it work."""
    open_substrate(**options)
    if shutil.which("bwrap", path=PATH) is None:
        return Availability(False, "bubblewrap is not installed", _INSTALL)
    words = ("--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")
    tried = await asyncio.to_thread(_ask, *words)
    if tried.returncode != 0:
        why = tried.stderr.strip().removeprefix("bwrap: ")
        remedy = "sysctl kernel.unprivileged_userns_clone=1"
        return Availability(False, f"bubblewrap does not work here: {why}", remedy)
    return Availability(True, "one bubblewrap per command")


def _ask(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bwrap", *words], capture_output=True, text=True, check=False)
