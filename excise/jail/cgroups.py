"""Where the kernel counts and limits what jails use: cgroups of version 1, of version 2, or both mounted.

Found out from /proc, purely; made by `make` as one directory per hierarchy, named by the lease, below the
place where we are ourselves: whoever limits us limits our jails. Each jail has `box-N` in there.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.errors import SubstrateUnavailable
from excise.jail.phase import unavailable

WANTED = ("memory", "pids", "cpu")
ALSO = ("cpuset", "freezer")
_PREFIX = "excise-"


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted hierarchy: what part of it is mounted, where, and its controllers (none: version 2)."""

    root: str
    path: str
    controllers: frozenset[str]
    unified: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of ours in one hierarchy. `kind` is a controller of version 1, or "unified"."""

    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class Layout:
    """What this host offers: `places` to make the lease's directories in, and the controllers nobody has."""

    version: str
    places: tuple[Place, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        lacks = f", without {', '.join(self.missing)}" if self.missing else ""
        return f"cgroups {self.version}{lacks}"


NONE = Layout("none", (), (*WANTED, *ALSO))


def parse_mounts(mountinfo: str) -> list[Mount]:
    """The hierarchies in a /proc/PID/mountinfo."""
    found = []
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or kind[0] not in {"cgroup", "cgroup2"} or len(fields) < 5 or len(kind) < 3:
            continue
        options = frozenset(kind[2].split(","))
        root, path = _unescape(fields[3]), _unescape(fields[4])
        found.append(Mount(root, path, options, unified=kind[0] == "cgroup2"))
    return found


def parse_own(text: str) -> dict[str, str]:
    """Controller to our own cgroup in it, from a /proc/PID/cgroup; "" is version 2."""
    own = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    return own


def plan_v1(mounts: Iterable[Mount], own: Mapping[str, str]) -> Layout:
    """Our own cgroup in each hierarchy of version 1 that has a controller we use."""
    places: list[Place] = []
    for kind in (*WANTED, *ALSO):
        mount = next((m for m in mounts if not m.unified and kind in m.controllers), None)
        if mount is None or kind not in own:
            continue
        path = _within(mount, own[kind])
        if path not in {place.path for place in places}:
            places.append(Place(kind, path))
    have = {place.kind for place in places}
    missing = tuple(kind for kind in (*WANTED, *ALSO) if kind not in have)
    return Layout("v1", tuple(places), missing) if places else NONE


def candidates_v2(mounts: Iterable[Mount], own: Mapping[str, str]) -> list[Path]:
    """Where a directory could be made in version 2, best first.

    A cgroup that has processes cannot hand controllers down, so ours has to stand beside our own
    cgroup, not below it; only the root of all is free of that rule.
    """
    mount = next((m for m in mounts if m.unified), None)
    if mount is None or "" not in own:
        return []
    here, top = _within(mount, own[""]), Path(mount.path)
    above = [path for path in here.parents if path.is_relative_to(top)]
    return above or [top]


def discover(proc: Path = Path("/proc")) -> Layout:
    """What this host offers us, by looking."""
    try:
        mounts = parse_mounts((proc / "self/mountinfo").read_text())
        own = parse_own((proc / "self/cgroup").read_text())
    except OSError:
        return NONE
    for place in candidates_v2(mounts, own):
        offered = _words(place / "cgroup.controllers")
        handed = _words(place / "cgroup.subtree_control")
        if handed.issuperset(WANTED) or (place == _top(mounts) and offered.issuperset(WANTED)):
            missing = tuple(k for k in ("cpuset",) if k not in offered)
            return Layout("v2", (Place("unified", place),), missing)
    layout = plan_v1(mounts, own)
    hybrid = layout.places and any(m.unified for m in mounts)
    return Layout("v1 (hybrid)", layout.places, layout.missing) if hybrid else layout


def make(layout: Layout, lease: str) -> tuple[Place, ...]:
    """Our directory in each hierarchy; all of them, or none and an error that says why."""
    made: list[Place] = []
    for place in layout.places:
        path = place.path / name_of(lease)
        try:
            path.mkdir()
            made.append(Place(place.kind, path))
            if place.kind == "unified":
                _hand_down(place.path, path)
            if place.kind == "cpuset":
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (path / name).write_text((place.path / name).read_text())
        except OSError as error:
            remove(made)
            raise _refused(place, error) from error
    return tuple(made)


def name_of(lease: str) -> str:
    """What its directories are called."""
    return f"{_PREFIX}{lease}"


def leases_in(place: Place) -> dict[str, Place]:
    """The directories in this one that are of leases, by lease."""
    found = sorted(place.path.glob(f"{_PREFIX}*"))
    return {each.name.removeprefix(_PREFIX): Place(place.kind, each) for each in found}


def remove(places: Iterable[Place]) -> None:
    """Remove directories without boxes in them; what is gone already is fine."""
    for place in places:
        try:
            place.path.rmdir()
        except FileNotFoundError:
            continue


def _hand_down(parent: Path, path: Path) -> None:
    offered = _words(parent / "cgroup.controllers")
    wanted = [name for name in (*WANTED, "cpuset") if name in offered]
    if not _words(parent / "cgroup.subtree_control").issuperset(wanted):
        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
    (path / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))


def _refused(place: Place, error: OSError) -> SubstrateUnavailable:
    text = f"cannot make a cgroup in {place.path}: {error.strerror}"
    if error.errno == errno.EBUSY:  # the root of a container on a host of version 2
        main = place.path / "main"
        each = f"for p in $(cat {place.path}/cgroup.procs)"  # itself one of them, and gone by then
        move = f"{each}; do echo $p > {main}/cgroup.procs || :; done 2>/dev/null"
        text += f"; a cgroup with processes hands no controllers down: mkdir {main}; {move}"
    return unavailable(text)


def _within(mount: Mount, own: str) -> Path:
    root = mount.root.rstrip("/")
    inside = own[len(root) :] if own == root or own.startswith(root + "/") else ""
    return Path(mount.path + inside.rstrip("/"))


def _top(mounts: Iterable[Mount]) -> Path | None:
    return next((Path(m.path) for m in mounts if m.unified), None)


def _words(file: Path) -> frozenset[str]:
    try:
        return frozenset(file.read_text().split())
    except OSError:
        return frozenset()


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
