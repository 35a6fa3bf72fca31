"""QEMU's own protocol, over a socket that it was started with: one command at a time, answered before the next."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

CALL_S = 30.0
_CHUNK_BYTES = 65536


class QmpError(Exception):
    """QEMU refused a command, or is gone."""


class Qmp:
    """One monitor. Nothing is said before the first command."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._kept = b""
        self._greeted = False
        sock.setblocking(False)

    async def call(self, command: str, /, **arguments: Any) -> Any:
        """What it returns; a refusal is raised."""
        await self._greet()
        await self._send(command, arguments)
        return await self._answer("return")

    async def give(self, name: str, descriptor: int) -> None:
        """From now on QEMU knows this file by a name."""
        await self._greet()
        request = json.dumps({"execute": "getfd", "arguments": {"fdname": name}}).encode()
        socket.send_fds(self._sock, [request], [descriptor])
        await self._answer("return")

    def close(self) -> None:
        self._sock.close()

    async def _greet(self) -> None:
        if not self._greeted:
            self._greeted = True
            await self._answer("QMP")
            await self.call("qmp_capabilities")

    async def _send(self, command: str, arguments: dict[str, Any]) -> None:
        request: dict[str, Any] = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, json.dumps(request).encode())
        except OSError as error:
            raise QmpError(f"{command}: QEMU is gone") from error

    async def _answer(self, wanted: str) -> Any:
        """The next message that is no event."""
        async with asyncio.timeout(CALL_S):
            while True:
                message = json.loads(await self._line())
                if wanted in message:
                    return message[wanted]
                if "error" in message:
                    raise QmpError(str(message["error"].get("desc")))

    async def _line(self) -> bytes:
        loop = asyncio.get_running_loop()
        while b"\n" not in self._kept:
            try:
                more = await loop.sock_recv(self._sock, _CHUNK_BYTES)
            except OSError as error:
                raise QmpError("QEMU is gone") from error
            if not more:
                raise QmpError("QEMU is gone")
            self._kept += more
        line, _, self._kept = self._kept.partition(b"\n")
        return line
