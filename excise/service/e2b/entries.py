"""Files and directories as the SDKs are told of them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from datetime import UTC, datetime

from excise.errors import InputError
from excise.service.people import Person
from excise.substrates.base import Entry, EntryKind

_TYPES = {EntryKind.FILE: "FILE_TYPE_FILE", EntryKind.DIRECTORY: "FILE_TYPE_DIRECTORY"}
_LETTERS = {EntryKind.DIRECTORY: "d", EntryKind.LINK: "L"}
_UNKNOWN = "FILE_TYPE_UNSPECIFIED"


def entry_info(
    path: str,
    entry: Entry,
    names: Mapping[int, str],
    groups: Mapping[int, str],
    *,
    leads_to: EntryKind | None = None,
) -> dict[str, object]:
    """One entry. A link is told as what it `leads_to`, and that it is one; a broken one as nothing known."""
    link = entry.kind is EntryKind.LINK
    kind = leads_to if link else entry.kind
    told: dict[str, object] = {
        "name": posixpath.basename(path) or "/",
        "type": _TYPES.get(kind, _UNKNOWN) if kind is not None else _UNKNOWN,
        "path": path,
        "size": str(0 if kind is EntryKind.DIRECTORY else entry.size),
        "mode": entry.mode,
        "permissions": permissions(entry),
        "owner": names.get(entry.uid, str(entry.uid)),
        "group": groups.get(entry.gid, str(entry.gid)),
        "modifiedTime": moment(entry.modified_ns),
    }
    if link:
        told["isSymlink"] = True
        told["symlinkTarget"] = posixpath.normpath(
            posixpath.join(posixpath.dirname(path), entry.target or "")
        )
    return told


def permissions(entry: Entry) -> str:
    """As `ls -l` has them, but that a link's letter is an upper-case one."""
    bits = "".join(
        letter if entry.mode & (0o400 >> at) else "-" for at, letter in enumerate("rwxrwxrwx")
    )
    return _LETTERS.get(entry.kind, "-") + bits


def moment(ns: int) -> str:
    """A time of day in JSON, to the nanosecond; what lies outside of four-digit years is told as their ends."""
    seconds, rest = divmod(ns, 10**9)
    seconds = min(max(seconds, -62135596800), 253402300799)
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at.year:04d}{at:-%m-%dT%H:%M:%S}.{rest:09d}Z"


def moment_s(seconds: float) -> str:
    """The same of seconds since 1970."""
    return moment(round(seconds * 1e6) * 1000)


def placed(path: str, person: Person, workdir: str | None = None) -> str:
    """The absolute path that is meant: relative ones and `~` count from where the person is at home."""
    if path == "~" or path.startswith("~/"):
        path = person.home + path[1:]
    elif path.startswith("~"):
        raise InputError(f"{path[:80]!r}: only one's own home can be named by ~")
    return posixpath.normpath(posixpath.join(workdir or person.home, path))
