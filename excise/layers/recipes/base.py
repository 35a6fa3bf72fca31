"""The base: this host's own programs, by reference, with nothing of the host that is private in sight.

`/usr` is bound read-only where it stands, so the base takes no disk and is ready at once. Around it stands a
small tree of our own: the folders a Linux system has, a written `/etc` with only the entries listed below, and
places to bind upon. Not there at all: /home, /root, /var, /opt, /srv, /mnt, sockets, and every file of /etc that is
not listed. What only root could read below /usr, and sockets there, is covered by something empty.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError, LayerError
from excise.layers.host import ETC, FOLDERS, MERGED, SEARCH_PATH, base_of
from excise.layers.key import key_of
from excise.layers.lay import lay, listed
from excise.layers.store import Layer, Store
from excise.layers.tree import Member, inside, member_at, trace, walk

USR = Path("/usr")
ENV = {"PATH": SEARCH_PATH, "HOME": "/root", "LANG": "C.UTF-8"}
MOST_COVERED = 24
"""More private places than this below /usr, and the host is no base."""

COPIED = (
    *("alternatives", "ssl/certs", "ssl/openssl.cnf", "ca-certificates.conf", "pki/tls/certs"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path"),
    *("localtime", "timezone", "locale.alias", "os-release", "debian_version", "terminfo"),
    *("services", "protocols", "mime.types", "magic", "magic.mime", "fonts", "perl"),
)
"""Of the host's /etc: what programs below /usr cannot work without and no administrator keeps secrets in."""

_MORE_COPIED = ("python3*", "java-*-openjdk")
_OWN = {
    "etc/resolv.conf": "",
    "etc/shells": "/bin/sh\n/bin/bash\n",
    "etc/pam.d/su": (
        "auth sufficient pam_rootok.so\n"
        "account required pam_permit.so\n"
        "session required pam_permit.so\n"
    ),
}
"""Ours instead of the host's. `su` lets root become anybody, as in any distribution; harnesses change users with it."""

_EMPTY = ("boot", "media", "mnt", "opt", "srv", "usr", "var/cache", "var/lib", "var/log")
_LINKS = {"etc/mtab": "/proc/mounts", "var/run": "/run", "var/lock": "/run/lock"}
_EPOCH_S = 1_000_000_000
_MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_GONE_MEANWHILE = "No such file or directory"


@dataclass(frozen=True, slots=True)
class HostBase:
    """What to mount: `lowers` as one overlay, top first, then each of `binds` (source, target), in order, read-only."""

    layers: tuple[Layer, ...]
    """What to pin for as long as it is mounted."""
    lowers: tuple[Path, ...]
    binds: tuple[tuple[Path, str], ...]
    env: Mapping[str, str]


def host_base(store: Store, paths: Sequence[Path] = ()) -> HostBase:
    """The host as an image. `paths` are seen at the same places, and with a virtual environment its interpreter."""
    usr = [USR, *(Path("/", name) for name in MERGED if _is_folder(Path("/", name)))]
    usr += mounted_below(_MOUNTS.read_text(), usr)
    shown = [*_outermost([*usr, *_asked(paths)]), *(path for path in usr if path.is_mount())]
    shown = list(dict.fromkeys(shown))
    nothing = _nothing(store, usr)
    covered = [Path(text) for text in nothing.facts.notes["private"]]
    covered += [place for prefix in _prefixes(paths) for place in _own_packages(prefix)]
    skeleton = _layer(store, {"kind": "base"}, list(_skeleton()))
    places = _layer(store, {"kind": "places"}, list(_places(shown, paths)))
    binds = [(place.resolve(), str(place)) for place in shown]
    binds += [(_cover(nothing, place), str(place)) for place in dict.fromkeys(covered)]
    layers = (places, skeleton, nothing)
    return HostBase(layers, (places.path, skeleton.path), tuple(binds), dict(ENV))


def _layer(store: Store, recipe: Mapping[str, object], members: Sequence[Member]) -> Layer:
    whole = {**recipe, "members": listed(members)}
    return store.build(key_of(whole), whole, lambda tree: lay(members, tree))


def _skeleton() -> Iterator[Member]:
    for at, mode in {**FOLDERS, **dict.fromkeys(_EMPTY, 0o755)}.items():
        yield Member(at, mode)
    for at, text in {**ETC, **_OWN}.items():
        yield Member(at, 0o644, data=text.encode(), mtime_s=_EPOCH_S)
    for at, target in _LINKS.items():
        yield Member(at, 0o777, target=target)
    for name in MERGED:
        place = Path("/", name)
        if place.is_symlink() or place.is_dir():
            merged = member_at(place, name)
            yield from (() if merged is None else (merged,))
    yield from (member for member in _etc() if _for_everybody(member))


def _etc() -> Iterator[Member]:
    etc = Path("/etc")
    found = [etc / name for name in COPIED]
    found += [place for pattern in _MORE_COPIED for place in sorted(etc.glob(pattern))]
    for place in found:
        if place.is_dir() and not place.is_symlink():
            yield from walk(place)
        elif place.is_symlink() or place.is_file():
            member = member_at(place, inside(place))
            yield from (() if member is None else (member,))


def _for_everybody(member: Member) -> bool:
    """Whether a stranger on this host could read it."""
    return member.target is not None or bool(member.mode & stat.S_IROTH)


def _asked(paths: Sequence[Path]) -> list[Path]:
    for path in paths:
        if not path.is_absolute() or not path.exists():
            raise InputError(f"{path} is not an absolute path of this host")
        if path == Path("/") or path in {Path("/etc"), Path("/root"), Path("/home"), Path("/var")}:
            raise InputError(f"{path} holds what is private: name just what is needed below it")
    return [*paths, *_prefixes(paths)]


def _prefixes(paths: Sequence[Path]) -> list[Path]:
    """Where the interpreters of those paths that are virtual environments are installed."""
    prefixes = (prefix for path in paths for prefix in base_of(path))
    return [prefix for prefix in dict.fromkeys(prefixes) if not prefix.is_relative_to(USR)]


def _own_packages(prefix: Path) -> list[Path]:
    """What the host's user installed for himself beside an interpreter."""
    return sorted(path for path in prefix.glob("lib/python*/site-packages") if path.is_dir())


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """`paths` without those that stand below another."""
    ordered = sorted(dict.fromkeys(paths), key=lambda path: len(path.parts))
    kept: list[Path] = []
    for path in ordered:
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept


def _places(shown: Sequence[Path], paths: Sequence[Path]) -> Iterator[Member]:
    """Something to bind each path upon, and every symbolic link on the way to it."""
    for path in shown:
        yield from (member for member in trace(path) if member.target is not None)
        real = path.resolve()
        if real.is_dir():
            yield Member(inside(real), 0o755)
        else:
            yield Member(inside(real), 0o644, data=b"")
    if any(path.is_relative_to("/root") for path in (*shown, *paths)):
        yield Member("root", 0o711)


def _nothing(store: Store, folders: Sequence[Path]) -> Layer:
    """An empty folder and an empty file, to cover with; and, noted, what of `folders` must be covered.

    It is looked for again whenever the package manager changed something, or the folders themselves did.
    """
    changed = [*folders, *(folder / "local" for folder in folders), Path("/var/lib/dpkg/status")]
    changed += [Path("/var/lib/rpm"), Path("/lib/apk/db/installed")]
    seen = [[str(path), path.stat().st_mtime_ns] for path in changed if path.exists()]
    recipe = {"kind": "nothing", "user": os.geteuid(), "seen": seen}

    def make(tree: Path) -> Mapping[str, object]:
        lay([Member("folder", 0o755), Member("file", 0o644, data=b"")], tree)
        return {"private": private_below(folders)}

    return store.build(key_of(recipe), recipe, make)


def private_below(folders: Sequence[Path]) -> list[str]:
    """What below `folders` strangers cannot read, and what is no file at all."""
    folder, file = ("-type", "d", "!", "-perm", "-005"), ("-type", "f", "!", "-perm", "-004")
    what = ("(", *folder, "-prune", ")", "-o", "(", *file, ")", "-o", "-type", "s,p,b,c")
    command = ["find", *map(str, folders), "-xdev", "(", *what, ")", "-print0"]
    environment = {"PATH": SEARCH_PATH, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    found = sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
    said = done.stderr.decode("utf-8", "replace").splitlines()
    unseen = [line for line in said if not line.endswith(_GONE_MEANWHILE)]
    if unseen and os.geteuid() == 0:
        raise LayerError(f"the host's programs cannot be looked through: {unseen[-1]}")
    if len(found) > MOST_COVERED:
        raise InputError(
            f"{len(found)} places below /usr are not for everybody, such as {found[0]}: "
            "use an image, not this host's own programs"
        )
    return found


def _cover(nothing: Layer, place: Path) -> Path:
    return nothing.path / ("folder" if place.is_dir() else "file")


def mounted_below(mounts: str, folders: Sequence[Path]) -> list[Path]:
    """Folders that are other file systems below `folders`: a bind does not bring them along. Highest first."""
    named = (line.split(" ")[1] for line in mounts.splitlines() if line.count(" ") > 1)
    places = (Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), name)) for name in named)
    below = {p for p in places if any(folder in p.parents for folder in folders)}
    return sorted(path for path in below if path.is_dir())


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
