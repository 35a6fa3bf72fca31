"""The disks that guests boot from: one ext4 file per image and size, made once, never written to by a guest."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

from excise.errors import NO_ROOM, DiskFull, InputError
from excise.substrates.vm.parts import program
from excise.tasks.cache import digest, ensure, root
from excise.types import MIB

HOST = "host"
"""The image that `Spec` names by default: made of this host's own programs, see `excise.layers.host`."""

FORMAT = "1"
"""Part of the cache's key: raise it when the same archive must give another disk."""

_FEATURES = ("-O", "^has_journal", "-E", "lazy_itable_init=1,root_owner=0:0", "-m", "0")
"""No journal: a disk that lives as long as its sandbox is never recovered."""

_EXT4_AT, _EXT4 = 1080, b"\x53\xef"
_NAME = "disk.ext4"


class Disks:
    """Archives that were imported, and the disks made of them. All of it is a cache and may be removed at any time."""

    def __init__(self, substrate: str) -> None:
        self._substrate = substrate
        self._known: dict[tuple[str, int], Path] = {}

    async def of(self, image: str, size: int) -> Path:
        """The disk to put a copy-on-write over: of an imported archive, or a file that is one already."""
        known = self._known.get((image, size))
        if known is None or not os.path.exists(known):  # noqa: ASYNC240, PTH110  # at every creation
            known = await asyncio.to_thread(self._find, image, size)
            self._known[image, size] = known
        return known

    async def has(self, reference: str) -> bool:
        return _imported(reference) is not None

    async def load(self, reference: str, archive: Path) -> None:
        await asyncio.to_thread(_note_down, reference, archive)

    def _find(self, image: str, size: int) -> Path:
        given = Path(image)
        if given.is_absolute() and given.is_file() and _is_ext4(given):
            return given
        archive = self._archive(image)
        facts = archive.stat()
        key = digest(FORMAT, str(archive), str(facts.st_size), str(facts.st_mtime_ns), str(size))
        entry = _folder() / key
        return ensure(entry, lambda into: _make(archive, into, size), _is_whole) / _NAME

    def _archive(self, image: str) -> Path:
        if image == HOST:
            return _of_this_host()
        given = Path(image)
        if given.is_absolute() and given.suffix == ".tar" and given.is_file():
            return given
        found = _imported(image)
        if found is None:
            raise InputError(
                f"{self._substrate} has no image {image}: name `host`, a .tar of a root file system, "
                "or a file that holds an ext4 file system"
            )
        return found


def _note_down(reference: str, archive: Path) -> None:
    note = _note(reference)
    note.parent.mkdir(parents=True, exist_ok=True)
    fresh = note.with_suffix(f".{os.getpid()}")
    fresh.write_text(str(archive.absolute()))
    fresh.replace(note)


def _make(archive: Path, into: Path, size: int) -> None:
    tree = into / "tree"
    tree.mkdir()
    _run(*_as_root("tar", "--extract", "--numeric-owner", "-f", str(archive), "-C", str(tree)))
    partial = into / _NAME
    make = (
        str(program("mke2fs", "e2fsprogs")),
        "-q",
        "-F",
        "-t",
        "ext4",
        *_FEATURES,
        "-d",
        str(tree),
    )
    _run(*_as_root(*make, str(partial), f"{size // MIB}M"))
    partial.chmod(0o444)
    shutil.rmtree(tree)


def _folder() -> Path:
    return root() / "vm"


def _note(reference: str) -> Path:
    return _folder() / "images" / re.sub(r"[^A-Za-z0-9.]", "-", reference)


def _imported(reference: str) -> Path | None:
    try:
        archive = Path(_note(reference).read_text())
    except OSError:
        return None
    return archive if archive.is_file() else None


def _is_whole(entry: Path) -> bool:
    return (entry / _NAME).is_file()


def _of_this_host() -> Path:
    from excise.layers.host import build_rootfs

    try:
        return build_rootfs(out=root() / "images").archive
    except OSError as error:
        raise InputError(f"cannot build an image of this host: {error}") from error


def _is_ext4(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(_EXT4_AT)
        return file.read(len(_EXT4)) == _EXT4


def _as_root(*words: str) -> tuple[str, ...]:
    """Root's files stay root's; for anybody else all files become root's, by a name space of users."""
    return words if os.geteuid() == 0 else ("unshare", "--map-root-user", "--", *words)


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip() or f"{words[0]} ended with {error.returncode}"
        last = said.splitlines()[-1]
        if any(os.strerror(number) in said for number in NO_ROOM):
            raise DiskFull(f"no room for a guest's disk: {last}") from error
        raise InputError(f"cannot make a disk of this image: {last}") from error
