"""Other people's programs, each in an environment of its own outside of the checkout, installed once for all runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = str(ROOT / ".tools" / "bin" / "uv")


def python_environment(
    name: str,
    *packages: str,
    alone: str | None = None,
    python: str = sys.executable,
    anew: bool = False,
) -> Path:
    """The folder of the programs of an environment that has these packages; `anew` looks for newer ones.

    `alone` is installed without what it says it depends on.
    """

    def make(folder: Path) -> None:
        make = (UV, "venv", "--quiet", "--python", python, str(folder))
        subprocess.run(make, check=True)
        add = (UV, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"))
        for words in (packages, ("--no-deps", alone)) if alone else (packages,):
            subprocess.run((*add, *words), check=True, env=os.environ | {"UV_LINK_MODE": "copy"})

    return _once(name, make, anew=anew) / "bin"


def node_folder(name: str, *packages: str, anew: bool = False) -> Path:
    """A folder in which these packages of npm's registry are installed."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "package.json").write_text('{"private": true}')
        add = ("npm", "install", "--no-fund", "--no-audit", "--loglevel=error", *packages)
        subprocess.run(add, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    return _once(name, make, anew=anew)


def _once(name: str, make: Callable[[Path], None], *, anew: bool) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "excise" / "installed" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if anew or not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / "complete").touch()
    return folder
