"""Commands under way and persistent shells of a service, as the contract has them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Self

import msgspec

from excise.errors import ExciseError, LifecycleError, Phase, SandboxGone, SubstrateError
from excise.substrates.remote import wire
from excise.substrates.remote.convert import observation_of
from excise.substrates.remote.http import Body, Http
from excise.substrates.remote.problems import error_of, unreachable
from excise.substrates.remote.requests import query, request
from excise.types import Observation

PATIENCE_S = 60.0
GRACE_S = 30.0
_PROCESS = msgspec.json.Decoder(wire.ProcessWire).decode
_PIECE = msgspec.json.Decoder(wire.PieceWire).decode
_OBSERVATION = msgspec.json.Decoder(wire.ObservationWire).decode


class RemoteStream:
    """A command whose output comes as it is written. A connection that breaks is made anew where it left off."""

    def __init__(
        self, http: Http, path: str, body: Body, lines: AsyncIterator[bytes] | None = None
    ) -> None:
        self._http = http
        self._path = path
        self._body: Body | None = body
        self._lines = lines or body.lines()
        self._at = 0
        self._exit: Observation | None = None
        self._error: Exception | None = None

    @classmethod
    async def started(cls, http: Http, path: str, body: Body) -> Self:
        """From an answer whose first line says which process it is."""
        lines = body.lines()
        try:
            number = _PROCESS(await anext(lines)).number
        except BaseException:
            body.close()
            raise
        return cls(http, f"{path}/{number}", body, lines)

    async def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        while self._exit is None and self._error is None:
            piece = await self._next()
            if piece is not None and piece.data:
                yield piece.stream, piece.data
        if self._error is not None:
            raise self._error

    async def write(self, data: bytes) -> None:
        await self._input(data)

    async def end_of_input(self) -> None:
        await self._input(b"", last="true")

    async def signal(self, number: int) -> None:
        await self._post("/signal", wire.SignalWire(number))

    async def resize(self, rows: int, columns: int) -> None:
        await self._post("/resize", wire.TerminalWire(rows, columns))

    async def wait(self) -> Observation:
        async for _ in self:
            pass
        if self._exit is None:
            raise LifecycleError("the stream was closed before its command ended")
        return self._exit

    async def close(self) -> None:
        """Kill it, if it still runs."""
        self._let_go()
        if self._exit is None and self._error is None:
            self._error = LifecycleError("the stream was closed before its command ended")
            data = request(self._http.target, "DELETE", self._path)
            with contextlib.suppress(SandboxGone, FileNotFoundError):
                await self._ask(data, repeatable=True)

    async def _next(self) -> wire.PieceWire | None:
        """One line more; None where the connection broke and another was made."""
        try:
            line = await anext(self._lines, None)
            if line is None:
                raise unreachable("the output ended without an end", Phase.RUN)
        except SubstrateError:
            await self._again()
            return None
        piece = _PIECE(line)
        self._at = piece.at + len(piece.data)
        if piece.exit is not None:
            self._exit = observation_of(piece.exit)
        elif piece.error is not None:
            self._error = error_of(piece.error, Phase.RUN)
        if self._exit is not None or self._error is not None:
            await anext(self._lines, None)
            self._let_go()
        return piece

    async def _again(self) -> None:
        self._let_go()
        path = query(f"{self._path}/output", since=self._at)
        data = request(self._http.target, "GET", path)
        try:
            self._body = await self._http.stream(
                data, Phase.RUN, patience_s=PATIENCE_S, repeatable=True
            )
        except (ExciseError, OSError) as error:
            self._error = error
            return
        self._lines = self._body.lines()

    def _let_go(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None

    async def _input(self, data: bytes, **more: str) -> None:
        path = query(f"{self._path}/input", **more)
        kind = "application/octet-stream"
        await self._ask(request(self._http.target, "POST", path, data, kind=kind))

    async def _post(self, path: str, asked: msgspec.Struct) -> None:
        await self._ask(request(self._http.target, "POST", self._path + path, wire.encode(asked)))

    async def _ask(self, data: bytes, *, repeatable: bool = False) -> None:
        await self._http.ask(data, Phase.RUN, patience_s=PATIENCE_S, repeatable=repeatable)


class RemoteShell:
    """One bash that stays. When it has ended, every further script raises SandboxGone."""

    def __init__(self, http: Http, path: str) -> None:
        self._http = http
        self._path = path

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        body = wire.encode(wire.ScriptWire(script, timeout_s))
        data = request(self._http.target, "POST", f"{self._path}/run", body)
        patience_s = None if timeout_s is None else timeout_s + GRACE_S
        found = await self._http.ask(data, Phase.RUN, patience_s=patience_s, repeatable=False)
        return observation_of(_OBSERVATION(found))

    async def close(self) -> None:
        data = request(self._http.target, "DELETE", self._path)
        with contextlib.suppress(SandboxGone):
            await self._http.ask(data, Phase.RUN, patience_s=PATIENCE_S, repeatable=True)
