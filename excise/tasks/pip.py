"""pip, wherever this interpreter has one, with the user's own configuration of indexes and certificates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from excise.errors import DiskFull, TaskError
from excise.tasks import cache


class BackEndMissing(TaskError):
    """The archive names a build back end that is not there."""


NO_ROOM_SAID = ("No space left on device", "Disk quota exceeded")
AN_ENVIRONMENT_BYTES = 32 * 1024**2
"""What an environment with pip takes, roughly: its making hides why it failed."""

_OLDEST = (22, 3)  # the first that installs into another environment: --python


def run(
    arguments: Sequence[str], *, store: Path, doing: str, env: Mapping[str, str] | None = None
) -> None:
    """Run pip; `doing` is what to say was not possible when it fails."""
    command = [
        *_pip(store),
        *("--disable-pip-version-check", "--no-input", "--quiet"),
        *arguments,
    ]
    done = subprocess.run(
        command, env={**_clean(), **(env or {})}, capture_output=True, text=True, check=False
    )
    refuse_full_disk(store, done.stdout + done.stderr, done.returncode)
    if done.returncode != 0:
        kind = BackEndMissing if "BackendUnavailable" in done.stderr else TaskError
        raise kind(f"{doing} was not possible: {_reason(done.stderr)}")


def _pip(store: Path) -> tuple[str, ...]:
    """This interpreter's pip, or one in an environment made for the purpose."""
    try:
        version = tuple(int(part) for part in metadata.version("pip").split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        version = ()
    if version >= _OLDEST:
        return (sys.executable, "-m", "pip")
    entry = store / "pip" / cache.digest(sys.version, sys.base_prefix)
    cache.ensure(entry, _make, lambda made: (made / "bin" / "python").exists())
    return (str(entry / "bin" / "python"), "-m", "pip")


def refuse_full_disk(store: Path, said: str, returncode: int, *, needs_bytes: int = 0) -> None:
    """A program that failed for want of room is not to be told as a program that does not work."""
    if returncode == 0:
        return
    there = next(p for p in (store, *store.parents) if p.exists())
    if shutil.disk_usage(there).free < needs_bytes or any(sign in said for sign in NO_ROOM_SAID):
        raise DiskFull(
            f"no room on the disk of {store}: make some, or set EXCISE_CACHE to a larger disk"
        )


def _make(place: Path) -> None:
    command = [sys.executable, "-m", "venv", str(place)]
    done = subprocess.run(command, env=_clean(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        said = done.stdout + done.stderr
        refuse_full_disk(place.parent, said, done.returncode, needs_bytes=AN_ENVIRONMENT_BYTES)
        raise TaskError(
            f"{sys.executable} can make no virtual environment; install its venv module "
            "(python3-venv on Debian) or install pip beside excise"
        )


def _clean() -> dict[str, str]:
    """The user's environment without what would redirect an interpreter or a set of packages."""
    redirecting = {
        "PYTHONPATH",
        "PYTHONHOME",
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "VIRTUAL_ENV",
    }
    return {k: v for k, v in os.environ.items() if k not in redirecting}


def _reason(stderr: str) -> str:
    """The one line of pip's complaints that a user can act on."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    offline = ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "Max retries")
    if any(sign in line for line in lines for sign in offline):
        return (
            "the package index cannot be reached; check the network, or name a reachable index "
            "or a folder of archives to pip (PIP_INDEX_URL, PIP_FIND_LINKS)"
        )
    return (said or lines or ["pip gave no reason"])[-1][:300]
