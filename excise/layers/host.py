"""A root file system made of the host's own programs, so that substrates are compared and not Python builds.

What is in it: the named programs with every library they load, git's helpers and templates, the paths one
asks for at the same places, the interpreter behind a virtual environment among them with its standard library,
and a minimal /etc. What is not: anything else of the host, its configuration, users and site-packages included.
Times of modification are kept, because Python's cached bytecode is valid only with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError
from excise.layers import programs as names
from excise.layers.archive import with_parents, write_archive
from excise.layers.recipe import WORKSPACE
from excise.layers.tree import Member, inside, member_at, trace, walk

DEFAULT = (*names.ESSENTIAL, *names.USUAL)
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FORMAT = "1"
"""Part of the cache's key: raise it when the same inputs must give another archive."""

_EPOCH_S = 1_000_000_000
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}
FOLDERS = {"proc": 0o555, "sys": 0o555, "dev": 0o755, "run": 0o755, "root": 0o700} | {
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    "home": 0o755,
    WORKSPACE: 0o755,
}
MERGED = ("bin", "sbin", "lib", "lib64")
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class HostImage:
    """An archive to import, and the name that says what is in it."""

    reference: str
    archive: Path
    digest: str


def build_rootfs(
    *,
    programs: Sequence[str] = DEFAULT,
    paths: Sequence[Path] = (),
    workspace: Mapping[str, Path] | None = None,
    out: Path,
) -> HostImage:
    """The archive for these inputs, in the folder `out`; built only if it is not there yet."""
    asked = list(_asked_for(programs, paths, workspace or {}))
    key = _digest(member.identity() for member in with_parents(asked))
    archive, note = out / f"host-{key[:16]}.tar", out / f"host-{key[:16]}.json"
    known = _cached(archive, note)
    if known is not None:
        return known
    libraries = sorted(_libraries_of(asked))
    members = [*asked, *(m for library in libraries for m in trace(Path(library)))]
    own = [str(place) for path in paths for place in (path, *base_of(path))]
    members += _loader_settings(libraries, names.search_path_of(libraries, own))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".host-") as scratch:
        made = Path(scratch, "archive")
        digest = write_archive(with_parents(members), made)
        facts = {"digest": digest, "libraries": [_fact(library) for library in libraries]}
        Path(scratch, "note").write_text(json.dumps(facts))
        made.replace(archive)
        Path(scratch, "note").replace(note)
    return _image(archive, digest)


def _image(archive: Path, digest: str) -> HostImage:
    return HostImage(f"excise/host:{digest[:12]}", archive, digest)


def _cached(archive: Path, note: Path) -> HostImage | None:
    try:
        facts = json.loads(note.read_text())
        fresh = archive.exists() and all(_fact(fact[0]) == fact for fact in facts["libraries"])
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return _image(archive, facts["digest"]) if fresh else None


def _fact(library: str) -> list[object]:
    status = Path(library).stat()
    return [library, status.st_size, status.st_mtime_ns]


def _digest(parts: Iterable[object]) -> str:
    sha256 = hashlib.sha256(FORMAT.encode())
    for part in parts:
        sha256.update(repr(part).encode())
    return sha256.hexdigest()


def _asked_for(
    programs: Sequence[str], paths: Sequence[Path], workspace: Mapping[str, Path]
) -> Iterator[Member]:
    for at, text in ETC.items():
        yield Member(at, 0o644, data=text.encode(), mtime_s=_EPOCH_S)
    for at, mode in FOLDERS.items():
        yield Member(at, mode, mtime_s=_EPOCH_S)
    for name in MERGED:
        if Path("/", name).is_symlink():
            yield from (m for m in [member_at(Path("/", name), name)] if m is not None)
    for place in _found(programs):
        yield from trace(place)
    if "git" in programs:
        yield from _git()
    yield from _present(Path("/usr/lib/locale/C.utf8"))
    for path in paths:
        yield from _path(path)
    for at, checkout in workspace.items():
        if not checkout.is_dir():
            raise InputError(f"{checkout} is not a folder: name a checkout for {at}")
        yield from walk(checkout, f"{WORKSPACE}/{at}", mtime_s=_EPOCH_S)


def _found(programs: Sequence[str]) -> Iterator[Path]:
    missing = []
    for name in dict.fromkeys(programs):
        place = shutil.which(name, path=SEARCH_PATH)
        if place is not None:
            yield Path(place)
        elif name not in names.USUAL or name in names.ESSENTIAL:
            missing.append(name)
    if missing:
        raise InputError(f"not on this host: {', '.join(missing)}: install what provides them")


def _git() -> Iterator[Member]:
    git = shutil.which("git", path=SEARCH_PATH) or "git"
    helpers = subprocess.run([git, "--exec-path"], capture_output=True, text=True, check=True)
    yield from _present(Path(helpers.stdout.strip()))
    yield from _present(Path("/usr/share/git-core/templates"))


def _present(folder: Path) -> Iterator[Member]:
    if folder.is_dir():
        yield from walk(folder.resolve())


def _path(path: Path) -> Iterator[Member]:
    if not path.is_absolute() or not path.exists():
        raise InputError(f"{path} is not an absolute path of this host")
    yield from trace(path)
    real = path.resolve()
    if not real.is_dir():
        return
    yield from walk(real)
    for prefix in base_of(path):
        settings = _settings(path)
        library = names.library_name_in(settings) or "python3"
        for name in ("python", "python3", library):
            for place in (path / "bin" / name, Path(settings["home"], name)):
                if place.exists():
                    yield from trace(place)
        for lib in ("lib", "lib64"):
            standard = prefix / lib / library
            if (standard / "os.py").is_file():
                yield from walk(standard, skip=_unused)


def _unused(folder: str) -> bool:
    return folder in names.UNUSED_LIBRARY_PARTS or folder.startswith("config-")


def _settings(path: Path) -> Mapping[str, str]:
    try:
        return names.settings_in((path / "pyvenv.cfg").read_text())
    except (OSError, UnicodeDecodeError):
        return {}


def base_of(path: Path) -> list[Path]:
    """Where the interpreter of a virtual environment is installed; empty for any other path."""
    home = _settings(path).get("home")
    if home is None:
        return []
    prefixes = dict.fromkeys((Path(home).parent, (path / "bin" / "python").resolve().parent.parent))
    return [prefix for prefix in prefixes if prefix.is_dir()]


def _libraries_of(members: Iterable[Member]) -> frozenset[str]:
    loadable = sorted({str(m.source) for m in members if m.source is not None and _is_elf(m)})
    listed = subprocess.run(
        ["ldd", *loadable],
        capture_output=True,
        text=True,
        check=False,  # complains, rightly, about static programs
        env={"PATH": SEARCH_PATH, "LC_ALL": "C"},
    )
    return names.libraries_in(listed.stdout)


def _is_elf(member: Member) -> bool:
    if member.source is None or not (member.mode & 0o111 or ".so" in member.source.name):
        return False
    with member.source.open("rb") as file:
        return file.read(4) == _ELF


def _loader_settings(libraries: Sequence[str], folders: Sequence[str]) -> list[Member]:
    """ld.so.conf and a cache of just these libraries: the host's own cache would name what is not there."""
    text = "".join(f"{folder}\n" for folder in folders).encode()
    made = [Member("etc/ld.so.conf", 0o644, data=text, mtime_s=_EPOCH_S)]
    ldconfig = shutil.which("ldconfig", path=SEARCH_PATH)
    if ldconfig is None or os.geteuid() != 0:  # it must enter the new root
        return made
    with tempfile.TemporaryDirectory() as root:
        Path(root, "etc").mkdir()
        Path(root, "etc/ld.so.conf").write_bytes(text)
        for name in MERGED:
            if Path("/", name).is_symlink():
                Path(root, name).symlink_to(Path("/", name).readlink())
        for library in libraries:
            real = Path(library).resolve()
            copy = Path(root, inside(real.parent), Path(library).name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(real, copy)
        subprocess.run([ldconfig, "-X", "-r", root], check=True, capture_output=True)
        cache = Path(root, "etc/ld.so.cache").read_bytes()
    return [*made, Member("etc/ld.so.cache", 0o644, data=cache, mtime_s=_EPOCH_S)]
