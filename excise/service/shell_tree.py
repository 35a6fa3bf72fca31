"""The ability `Tree` over plain commands, for substrates without it. Needs a POSIX shell and GNU find inside."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

from excise.substrates.base import Entry, EntryKind, Files, Substrate
from excise.substrates.look import look_one_by_one
from excise.types import Action, Handle, Observation

_KINDS = {"f": EntryKind.FILE, "d": EntryKind.DIRECTORY, "l": EntryKind.LINK}
_FORM = r"%f\0%y\0%s\0%m\0%U\0%G\0%T@\0%l\0"
_FIELDS = 8
_ERRORS = {
    "No such file": errno.ENOENT,
    "File exists": errno.EEXIST,
    "Not a directory": errno.ENOTDIR,
    "Is a directory": errno.EISDIR,
    "Permission denied": errno.EACCES,
    "Directory not empty": errno.ENOTEMPTY,
    "Operation not permitted": errno.EPERM,
}


class ShellTree:
    """As good as commands can do it; each operation costs one."""

    def __init__(self, substrate: Substrate) -> None:
        self._substrate = substrate

    async def stat(self, box: Handle, path: str, *, follow: bool = True) -> Entry:
        links = "-L" if follow else "-P"
        found = await self._must(box, path, "find", links, path, "-maxdepth", "0", "-printf", _FORM)
        return _entries(found.stdout)[0]

    async def look(self, box: Handle, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        return await look_one_by_one(self, box, paths, kinds)

    async def entries(self, box: Handle, path: str) -> list[Entry]:
        script = '[ -d "$1" ] || { ls -d "$1" >/dev/null && echo "Not a directory" >&2; exit 1; }; '
        script += 'exec find -L "$1" -maxdepth 0 -exec '
        script += 'sh -c \'cd "$1" && find . -mindepth 1 -maxdepth 1 -printf "$2"\' sh {} "$2" \\;'
        found = await self._must(box, path, "sh", "-c", script, "sh", path, _FORM)
        return sorted(_entries(found.stdout), key=lambda each: each.name)

    async def read_part(self, box: Handle, path: str, offset: int, most: int) -> bytes:
        script = 'exec < "$1" || exit 1; tail -c "+$2" | head -c "$3"'
        words = ("sh", "-c", script, "sh", path, str(offset + 1), str(most))
        return (await self._must(box, path, *words)).stdout

    async def put(
        self,
        box: Handle,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
    ) -> None:
        data = b"".join(pieces)
        if isinstance(self._substrate, Files):
            await self._substrate.write(box, path, data)
        else:
            script = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
            await self._must(box, path, "sh", "-c", script, "sh", path, stdin=data)
        await self.chmod(box, path, mode)
        if owner is not None:
            await self.chown(box, path, *owner)

    async def make_directory(self, box: Handle, path: str, *, mode: int = 0o755) -> None:
        script = 'mkdir -p "$(dirname "$1")" && mkdir -m "$2" "$1"'
        await self._must(box, path, "sh", "-c", script, "sh", path, f"{mode:o}")

    async def remove(self, box: Handle, path: str, *, tree: bool = False) -> None:
        if tree:
            script = 'ls -d "$1" >/dev/null && rm -rf "$1"'
        else:
            script = 'if [ -d "$1" ] && [ ! -L "$1" ]; then rmdir "$1"; else rm "$1"; fi'
        await self._must(box, path, "sh", "-c", script, "sh", path)

    async def rename(self, box: Handle, path: str, to: str) -> None:
        await self._must(box, path, "mv", "-T", path, to)

    async def chmod(self, box: Handle, path: str, mode: int) -> None:
        await self._must(box, path, "chmod", f"{mode:o}", path)

    async def chown(self, box: Handle, path: str, uid: int, gid: int) -> None:
        await self._must(box, path, "chown", "-h", f"{uid}:{gid}", path)

    async def _must(self, box: Handle, path: str, *words: str, stdin: bytes = b"") -> Observation:
        action = Action(words, env={"LC_ALL": "C"}, stdin=stdin)
        found = await self._substrate.run(box, action)
        if not found.ok:
            said = found.stderr.decode("utf-8", "replace")
            number = next((no for text, no in _ERRORS.items() if text in said), errno.EIO)
            raise OSError(number, os.strerror(number), path)
        return found


def _entries(found: bytes) -> list[Entry]:
    fields = found.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return [_entry(*fields[at : at + _FIELDS]) for at in range(0, len(fields), _FIELDS)]


def _entry(
    name: str, kind: str, size: str, mode: str, uid: str, gid: str, changed: str, target: str
) -> Entry:
    kind_of = _KINDS.get(kind, EntryKind.OTHER)
    numbers = int(mode, 8), int(uid), int(gid)
    whole, _, part = changed.partition(".")
    modified_ns = int(whole) * 10**9 + int(part.ljust(9, "0")[:9] or 0)
    return Entry(name, kind_of, int(size), *numbers, modified_ns, target or None)
