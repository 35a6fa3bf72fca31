"""Who runs the commands that fill a layer: the host itself, or an environment made of the layers below."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from excise.errors import LayerError
from excise.layers.lay import place_in

_REDIRECTING = ("PYTHON", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "NODE_PATH")
_COMPLAINTS = ("error", "e: ", "npm err", "fatal")
_SAID = 400


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a recipe; `doing` is what to say was not possible when it fails."""

    argv: tuple[str, ...]
    doing: str
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """Commands in their order, and the files, by their places in the environment, that are there before them."""

    commands: tuple[Command, ...]
    inputs: Mapping[str, bytes] = field(default_factory=dict)


class CommandFailed(LayerError):
    """A command of a recipe failed; `log` is all that it said."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class Runner(Protocol):
    """Runs commands so that what they write at a place of the environment ends up in the new layer's tree."""

    @property
    def contained(self) -> bool:
        """Whether commands see the layers below, and the tree on top of them, as their root file system."""
        ...

    def identity(self, program: str) -> str:
        """What decides the result beside the recipe and the layers below; empty if nothing does."""
        ...

    def sees(self, tree: Path, at: str) -> str:
        """The name that commands know the place `at` of the environment by."""
        ...

    def run(self, work: Work, *, below: Sequence[Path], tree: Path) -> None:
        """Do it into `tree`, which is empty; LayerError with the last words of the first command that fails."""
        ...


class HostRunner:
    """The host itself: for what can be made in any folder, such as a virtual environment.

    What is installed runs with the user's own rights while it is installed, as it does in any shell.
    """

    contained = False

    def identity(self, program: str) -> str:
        found = shutil.which(program)
        if found is None:
            return ""
        done = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=False, env=clean()
        )
        return f"{Path(found).resolve()} {(done.stdout or done.stderr).strip()}"

    def sees(self, tree: Path, at: str) -> str:
        return str(place_in(tree, at))

    def run(self, work: Work, *, below: Sequence[Path], tree: Path) -> None:
        del below  # the host's own files are
        for at, data in work.inputs.items():
            place = place_in(tree, at)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for command in work.commands:
            _run(command)


def _run(command: Command) -> None:
    dying = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
    try:
        done = subprocess.run(
            [*dying, *command.argv],
            cwd=command.cwd,
            env={**clean(), **command.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise LayerError(f"{command.doing} was not possible: {error}") from error
    if done.returncode != 0:
        raise said_no(command, done.stdout, done.stderr)


def said_no(command: Command, stdout: str, stderr: str) -> CommandFailed:
    """The error of a command that ended with another code than 0."""
    text = f"{command.doing} was not possible: {last_words(stderr, stdout)}"
    return CommandFailed(text, f"$ {shlex.join(command.argv)}\n{stdout}{stderr}")


def clean() -> dict[str, str]:
    """The user's environment without what would redirect an interpreter, or keep it from caching bytecode."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_REDIRECTING)}


def last_words(*said: str) -> str:
    """The one line of a program's complaints that a user can act on, with its cause if one is told."""
    lines = [line.strip() for text in said for line in text.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.lower().startswith(_COMPLAINTS)]
    if not starts:
        return (lines or ["no reason given"])[-1][:_SAID]
    causes = [line for line in lines[starts[-1] + 1 :] if line.lower().startswith("cause")]
    return "; ".join([lines[starts[-1]], *causes])[:_SAID]
