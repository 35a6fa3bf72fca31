"""Where prepared tasks are kept, and how two processes never build the same entry at once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.errors import InputError


def root() -> Path:
    """`$EXCISE_CACHE`, else `$XDG_CACHE_HOME/excise`, else `~/.cache/excise`."""
    if chosen := os.environ.get("EXCISE_CACHE"):
        return Path(chosen).absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "excise"


def digest(*parts: str) -> str:
    """Twelve hex digits that name the content of `parts`; their boundaries count."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(entry: Path) -> Iterator[None]:
    """Hold `entry` against other processes and threads; the kernel lets go when the holder dies."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = (entry.parent / f".{entry.name}.lock").open("w")
    except OSError as error:
        raise InputError(
            f"the cache {entry.parent} is not writable ({error.strerror}); set EXCISE_CACHE"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(entry: Path, build: Callable[[Path], None], sound: Callable[[Path], bool]) -> Path:
    """The entry, built if it is missing or no longer sound.

    It is built beside its place and renamed into it, so that it is never seen half made.
    """
    with locked(entry):
        if entry.exists() and sound(entry):
            return entry
        shutil.rmtree(entry, ignore_errors=True)
        for left_over in entry.parent.glob(f".{entry.name}.*.tmp"):
            shutil.rmtree(left_over, ignore_errors=True)
        workshop = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", suffix=".tmp", dir=entry.parent))
        try:
            workshop.chmod(0o755)
            build(workshop)
            workshop.rename(entry)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    return entry
