"""The interpreter a task's tests run with: its pinned requirements, nothing else, at a path that stays."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from excise.errors import TaskError
from excise.tasks import cache, pip

_COMPLETE = "complete"


def ensure(requirements: Sequence[str], store: Path) -> Path:
    """A virtual environment with exactly these packages: dependencies are named or absent.

    It is made at its final path, which scripts in it contain, and holds a mark once it is complete.
    """
    wanted = tuple(sorted(requirements))
    place = store / "venvs" / cache.digest(sys.version, sys.base_prefix, *wanted)
    with cache.locked(place):
        if not _sound(place, wanted):
            shutil.rmtree(place, ignore_errors=True)
            _make(place, wanted, store)
    return place


def _make(place: Path, requirements: Sequence[str], store: Path) -> None:
    command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        pip.refuse_full_disk(store, done.stdout + done.stderr, done.returncode)
        raise TaskError(
            f"{sys.executable} can make no virtual environment; install its venv module "
            "(python3-venv on Debian)"
        )
    if requirements:
        install = ("--python", str(place / "bin" / "python"), "install", "--no-deps", *requirements)
        try:
            pip.run(install, store=store, doing="installing the task's requirements")
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
    (place / _COMPLETE).touch()


def _sound(place: Path, requirements: Sequence[str]) -> bool:
    """Whether the environment is complete and still holds every package, and a living interpreter."""
    if not (place / _COMPLETE).exists() or not (place / "bin" / "python").exists():
        return False
    found = {
        _normal(*folder.stem.rsplit("-", 1))
        for folder in place.glob("lib/python*/site-packages/*.dist-info")
    }
    return {_normal(*requirement.split("==")) for requirement in requirements} == found


def _normal(name: str, version: str) -> str:
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"
