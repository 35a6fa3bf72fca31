"""Members of a root file system, laid out as files below a folder, all owned by whoever lays them out."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from excise.layers.archive import with_parents
from excise.layers.recipe import settled
from excise.layers.tree import Member, inside

_FOLDER, _LINK, _FILE = "folder", "link", "file"


def lay(members: Iterable[Member], tree: Path) -> None:
    """Write `members`, and the folders above them, below `tree`."""
    folders = []
    for member in with_parents(members):
        place = tree / member.path
        if member.is_folder:
            place.mkdir(exist_ok=True)
            folders.append((place, member.mode))
        elif member.target is not None:
            place.symlink_to(member.target)
        else:
            _write(member, place)
    for place, mode in folders:  # last: a folder may be one that even we cannot write to
        place.chmod(mode)


def place_in(tree: Path, at: str) -> Path:
    """Where in `tree` the absolute path `at` of the environment is; InputError if it could be outside."""
    return tree / inside(Path(settled(at)))


def _write(member: Member, place: Path) -> None:
    if member.source is None:
        place.write_bytes(member.data or b"")
    else:
        shutil.copyfile(member.source, place)
    place.chmod(member.mode)
    os.utime(place, (member.mtime_s, member.mtime_s))


def listed(members: Iterable[Member]) -> list[Sequence[object]]:
    """What `members` are, by content, as a recipe can say it."""
    return [_said(member) for member in with_parents(members)]


def _said(member: Member) -> Sequence[object]:
    if member.is_folder:
        return (member.path, _FOLDER, member.mode)
    if member.target is not None:
        return (member.path, _LINK, member.target)
    data = member.data if member.source is None else member.source.read_bytes()
    return (member.path, _FILE, member.mode, hashlib.sha256(data or b"").hexdigest())
