"""One entry of a directory as the SDK reads it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from excise.substrates.base import Entry, EntryKind

_KINDS = {
    EntryKind.FILE: "-",
    EntryKind.DIRECTORY: "d",
    EntryKind.LINK: "L",
    EntryKind.OTHER: "?",
}
_SPECIAL = ((0o4000, "u"), (0o2000, "g"), (0o1000, "t"))
_LETTERS = "rwxrwxrwx"


def mode_of(entry: Entry) -> str:
    """Kind and permissions in letters: `-rw-r--r--`, `drwxr-xr-x`, `ugtrwxrwxrwx` and so on."""
    special = "".join(letter for bit, letter in _SPECIAL if entry.mode & bit)
    kind = _KINDS[entry.kind]
    first = special if kind == "-" and special else (kind if kind == "-" else kind + special)
    bits = (
        letter if entry.mode >> (len(_LETTERS) - 1 - at) & 1 else "-"
        for at, letter in enumerate(_LETTERS)
    )
    return first + "".join(bits)


def info(entry: Entry, path: str, *, directory: bool | None = None) -> dict[str, object]:
    """The entry at a path. `directory` tells it of what a link leads to."""
    seconds, rest_ns = divmod(entry.modified_ns, 10**9)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest_ns // 1000)
    is_dir = entry.kind is EntryKind.DIRECTORY if directory is None else directory
    return {
        "name": entry.name,
        "path": path,
        "isDir": is_dir,
        "size": entry.size,
        "mode": mode_of(entry),
        "permissions": f"{entry.mode & 0o777:04o}",
        "owner": str(entry.uid),
        "group": str(entry.gid),
        "modTime": at.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC"),
        "modifiedAt": at.isoformat().replace("+00:00", "Z"),
    }
