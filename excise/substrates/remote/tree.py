"""The files of a remote sandbox: the abilities `Files` and `Tree` over the native API."""

from __future__ import annotations

import abc
import posixpath
from collections.abc import Iterable, Sequence

import msgspec

from excise.errors import InputError, Phase
from excise.substrates.base import Entry
from excise.substrates.look import look_one_by_one
from excise.substrates.remote import wire
from excise.substrates.remote.convert import entry_of
from excise.substrates.remote.http import Http
from excise.substrates.remote.requests import part, query, request
from excise.types import Action, Handle, Observation

BYTES = "application/octet-stream"
PATIENCE_S = 600.0
_ENTRY = msgspec.json.Decoder(wire.EntryWire).decode
_ENTRIES = msgspec.json.Decoder(wire.EntriesWire).decode


class RemoteTree(abc.ABC):
    """Relative paths count from the workspace, which is asked for once."""

    http: Http
    _workspace: str | None = None

    @abc.abstractmethod
    async def run(self, box: Handle, action: Action) -> Observation: ...

    async def read(self, box: Handle, path: str) -> bytes:
        return await self._get(box, "/files", path)

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        await self.put(box, path, (data,))

    async def stat(self, box: Handle, path: str, *, follow: bool = True) -> Entry:
        return entry_of(_ENTRY(await self._get(box, "/stat", path, follow=str(follow).lower())))

    async def look(self, box: Handle, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        return await look_one_by_one(self, box, paths, kinds)

    async def entries(self, box: Handle, path: str) -> list[Entry]:
        return [entry_of(each) for each in _ENTRIES(await self._get(box, "/entries", path)).items]

    async def read_part(self, box: Handle, path: str, offset: int, most: int) -> bytes:
        return await self._get(box, "/files", path, offset=offset, most=most)

    async def put(
        self,
        box: Handle,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
    ) -> None:
        user = None if owner is None else str(owner[0])
        where = query(_of(box, "/files"), path=await self._place(box, path), mode=mode, user=user)
        await self._sent(request(self.http.target, "PUT", where, b"".join(pieces), kind=BYTES))

    async def make_directory(self, box: Handle, path: str, *, mode: int = 0o755) -> None:
        asked = wire.DirectoryWire(await self._place(box, path), mode)
        await self._post(box, "/directories", asked)

    async def remove(self, box: Handle, path: str, *, tree: bool = False) -> None:
        place = await self._place(box, path)
        where = query(_of(box, "/files"), path=place, tree=str(tree).lower())
        await self._sent(request(self.http.target, "DELETE", where))

    async def rename(self, box: Handle, path: str, to: str) -> None:
        places = await self._place(box, path), await self._place(box, to)
        await self._post(box, "/move", wire.MoveWire(*places))

    async def chmod(self, box: Handle, path: str, mode: int) -> None:
        await self._post(box, "/mode", wire.ModeWire(await self._place(box, path), mode))

    async def chown(self, box: Handle, path: str, uid: int, gid: int) -> None:
        del gid
        await self._post(box, "/mode", wire.ModeWire(await self._place(box, path), user=str(uid)))

    async def _place(self, box: Handle, path: str) -> str:
        if not path or "\0" in path:
            raise InputError(f"{path!r} is not a path")
        if path.startswith("/"):
            return path
        if self._workspace is None:
            found = await self.run(box, Action(("pwd",)))
            self._workspace = found.stdout.decode().strip()
        return posixpath.join(self._workspace, path)

    async def _get(self, box: Handle, what: str, path: str, **more: str | float) -> bytes:
        where = query(_of(box, what), path=await self._place(box, path), **more)
        return await self._sent(request(self.http.target, "GET", where))

    async def _post(self, box: Handle, what: str, asked: msgspec.Struct) -> None:
        body = wire.encode(asked)
        data = request(self.http.target, "POST", _of(box, what), body)
        await self._sent(data, repeatable=False)

    async def _sent(self, data: bytes, *, repeatable: bool = True) -> bytes:
        return await self.http.ask(data, Phase.RUN, patience_s=PATIENCE_S, repeatable=repeatable)


def _of(box: Handle, what: str) -> str:
    return f"/v1/sandboxes/{part(box)}{what}"
