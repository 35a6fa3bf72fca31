"""Where a running pool can be asked what it does: a socket of its own, open to its user alone.

`async with Desk(pool):` opens it; `ask_all` finds those of this user on this host. One line of JSON in, one out.
What a killed pool leaves is one dead socket, which the next who looks removes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from excise.errors import ExciseError, InputError
from excise.pools.counts import Got
from excise.pools.pool import Pool
from excise.types import Handle, Spec

PATIENCE_S = 5.0
LONGEST = 1 << 20


def folder() -> Path:
    """Where pools of this user are to be asked."""
    if os.geteuid() == 0:
        return Path("/run/excise/pools")
    own = os.environ.get("XDG_RUNTIME_DIR")
    return Path(own, "excise/pools") if own else Path(f"/tmp/excise-{os.geteuid()}/pools")  # noqa: S108


@dataclass(slots=True)
class Desk:
    """One pool's."""

    pool: Pool
    place: Path = field(default_factory=folder)
    _server: asyncio.Server | None = None
    _socket: Path | None = None

    async def __aenter__(self) -> Self:
        self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._socket = self.place / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._server = await asyncio.start_unix_server(self._serve, self._socket, limit=LONGEST)
        self._socket.chmod(0o600)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None and self._socket is not None:
            self._server.close()
            self._socket.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ValueError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                writer.write(self._answer(await reader.readline()) + b"\n")
                await writer.drain()
        writer.close()

    def _answer(self, line: bytes) -> bytes:
        try:
            question = msgspec.json.decode(line)
            answer = _say(self.pool, question["ask"], question)
        except ExciseError as error:
            answer = {"error": str(error)}
        except (msgspec.MsgspecError, KeyError, TypeError):
            answer = {"error": "no question that a pool understands"}
        return json.dumps({"pool": self.pool.name, "pid": os.getpid(), **answer}).encode()


class Attended(Pool):
    """A pool that has a desk from its first creation until it is closed."""

    _desk: Desk | None = None

    async def create(self, spec: Spec) -> Handle:
        """As any pool does it."""
        if self._desk is None:
            self._desk = Desk(self)
            await self._desk.__aenter__()
        return await super().create(spec)

    async def close(self) -> None:
        """The desk first."""
        if self._desk is not None:
            await self._desk.__aexit__(None, None, None)
        await super().close()


def _say(pool: Pool, what: str, question: Mapping[str, Any]) -> dict[str, Any]:
    if what == "status":
        acquired = {str(got): pool.counts.acquired[got] for got in Got}
        spent = asdict(pool.spent())
        unfit = [asdict(each) for each in pool.unfit()]
        return {"now": pool.status(), "acquired": acquired, "spent": spent, "unfit": unfit}
    if what == "metrics":
        return {"metrics": pool.metrics()}
    if what == "plan":
        kept = [{"stage": c.key, "kind": str(c.path[-1].kind), "why": c.why} for c in pool.worthy()]
        return {"keep": kept}
    if what == "explain":
        return {"lines": list(pool.explain(msgspec.convert(question["spec"], Spec)))}
    raise InputError(f"no pool knows {what!r}")


def ask_all(question: Mapping[str, Any], place: Path | None = None) -> Iterator[dict[str, Any]]:
    """The answer of every pool that runs."""
    where = place or folder()
    for door in sorted(where.iterdir()) if where.is_dir() else ():
        answer = _ask(door, msgspec.json.encode(question))
        if answer is not None:
            yield answer


def _ask(door: Path, question: bytes) -> dict[str, Any] | None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(str(door))
            line.sendall(question + b"\n")
            with line.makefile("rb") as answers:
                found: dict[str, Any] = json.loads(answers.readline())
        except (ConnectionRefusedError, FileNotFoundError):
            with contextlib.suppress(OSError):
                door.unlink()
            return None
        except (OSError, ValueError):
            return {"error": f"{door} does not answer"}
    return found
