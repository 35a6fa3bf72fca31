"""Whatever jails leave on the host stands below names of a lease, held by an open lock.

A lease is a folder `PID-START-SPACE-RANDOM` (its driver, and the name space that numbers it so) with a file
`lock`; who holds it keeps a lock on that file, which the kernel lets go of when the last holder is dead,
however it died. So a live lease is never swept, and a dead one holds nothing. `cgroups` in it lists the cgroup
directories that are ours, written before they are made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.jail.cgroups import Layout, Place, name_of
from excise.jail.phase import unavailable

LOCK, CGROUPS, SCRATCH = "lock", "cgroups", "scratch"
_NEW = ".new-"
_PARTS = 4


@dataclass(frozen=True, slots=True)
class Lease:
    """A held lease: `lock` is the open file that holds it, to be shared with who holds it too."""

    name: str
    folder: Path
    lock: int

    @property
    def scratch(self) -> Path:
        return self.folder / SCRATCH

    def note(self, layout: Layout) -> None:
        """Write down which cgroup directories are about to be made."""
        lines = (f"{place.kind}:{place.path / name_of(self.name)}\n" for place in layout.places)
        (self.folder / CGROUPS).write_text("".join(lines))

    def let_go(self) -> None:
        """Close our hold; the folder stays while others hold it too."""
        with contextlib.suppress(OSError):
            os.close(self.lock)


def root() -> Path:
    """Where the leases of this user are: /run for root, else the user's own runtime folder."""
    if os.geteuid() == 0:
        return Path("/run/excise/leases")
    own = os.environ.get("XDG_RUNTIME_DIR")
    return Path(own, "excise/leases") if own else Path(f"/tmp/excise-{os.geteuid()}/leases")  # noqa: S108


def take(place: Path | None = None) -> Lease:
    """A new lease; nobody sees it before it is locked."""
    leases = place or root()
    name = f"{os.getpid()}-{start_of(os.getpid())}-{_space()}-{secrets.token_hex(4)}"
    new = leases / f"{_NEW}{name}"
    try:
        _ours(leases)
        (new / SCRATCH).mkdir(parents=True)
        lock = os.open(new / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        new.rename(leases / name)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise unavailable(f"cannot keep leases in {leases}: {error.strerror}") from error
    return Lease(name, leases / name, lock)


def start_of(pid: int) -> int | None:
    """When that process began, in ticks since boot: with the pid it names one process for good."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def dead(leases: Path) -> Iterator[tuple[Path, int]]:
    """The leases that nobody holds, each with its lock, which is held while the caller looks at it."""
    for folder in sorted(leases.iterdir()) if leases.is_dir() else ():
        with dead_one(folder) as lock:
            if lock is not None:
                yield folder, lock


@contextlib.contextmanager
def dead_one(folder: Path) -> Iterator[int | None]:
    """The lock of a lease that nobody holds, held for the while; None where there is no such lease."""
    lock = _lock_of(folder)
    try:
        yield lock
    finally:
        if lock is not None:
            os.close(lock)


def cgroups_of(folder: Path) -> tuple[Place, ...]:
    """What `note` wrote down, less what cannot be a directory of this lease."""
    try:
        lines = (folder / CGROUPS).read_text().splitlines()
    except OSError:
        return ()
    noted = (line.partition(":") for line in lines)
    name = name_of(folder.name)
    return tuple(Place(kind, Path(path)) for kind, _, path in noted if Path(path).name == name)


def is_orphan(name: str, leases: Path) -> bool:
    """Whether its driver is dead and its folder gone: what else has its name is nobody's.

    Of one that another pid name space numbers, nothing can be told from here.
    """
    parts = name.split("-")
    if len(parts) != _PARTS or parts[2] != str(_space()) or (leases / name).exists():
        return False
    return not _lives(name)


def remove(folder: Path) -> None:
    """Remove the folder of a lease whose cgroups are gone."""
    shutil.rmtree(folder, ignore_errors=True)


def _lock_of(folder: Path) -> int | None:
    """An open lock if nobody else has it; what is just being made is not a lease yet."""
    if folder.name.startswith(_NEW) and _lives(folder.name.removeprefix(_NEW)):
        return None
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None  # not a lease, or gone in this moment
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _space() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _lives(name: str) -> bool:
    pid, start, *_ = *name.split("-"), ""
    return pid.isdigit() and str(start_of(int(pid))) == start


def _ours(leases: Path) -> None:
    """In a folder that others can write to, somebody could be before us with a folder of our name."""
    leases.mkdir(parents=True, exist_ok=True, mode=0o755)
    for folder in (leases.parent, leases):
        found = folder.lstat()
        loose = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or loose:
            raise PermissionError(1, f"{folder} belongs to somebody else")


def places(folders: Iterable[Path]) -> tuple[Place, ...]:
    """All cgroup directories of these leases."""
    return tuple(place for folder in folders for place in cgroups_of(folder))
