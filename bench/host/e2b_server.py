"""What the e2b SDK talks to in its benchmark, in a process of its own: the service, or answers that are written down.

`python -m bench.host.e2b_server door` serves a pooled jail, `canned` says the same words at once and does nothing.
Both print their address and a key, and end with their standard input.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from excise.jail.substrate import Jail
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.service.all_doors import all_doors
from excise.service.cloud import Cloud
from excise.service.e2b.told import DAEMON_VERSION
from excise.service.e2b.wire import STREAM, envelope, last
from excise.service.keys import Ring, new_key
from excise.service.policy import Policy
from excise.service.serve import serving
from excise.types import Limits

SANDBOXES = 520
LIMITS = Limits(cpus=None, memory_bytes=None, pids=256, disk_bytes=None)

_MADE = msgspec.json.encode(
    {
        "templateID": "base",
        "sandboxID": "a" * 20,
        "clientID": "x",
        "envdVersion": DAEMON_VERSION,
        "envdAccessToken": "t",
    }
)
_RAN = (
    envelope({"event": {"start": {"pid": 1}}})
    + envelope({"event": {"end": {"exitCode": 0, "exited": True, "status": "exit status 0"}}})
    + last()
)


class Canned(asyncio.Protocol):
    """Reads a request to its end, and says what is always said."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._come = b""

    def data_received(self, data: bytes) -> None:
        self._come += data
        head, end, body = self._come.partition(b"\r\n\r\n")
        if not end or not _is_whole(head.lower(), body):
            return
        self._come = b""
        self._transport.write(self.answered(head))

    def answered(self, head: bytes) -> bytes:
        """What is always said to such a request."""
        path = head.split(b" ", 2)[1]
        if b"Process/Start" in path:
            return said(b"200 OK", STREAM.encode(), _RAN)
        if head.startswith(b"DELETE"):
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        return said(b"201 Created", b"application/json", _MADE)


def said(status: bytes, kind: bytes, body: bytes) -> bytes:
    """A whole answer."""
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (status, kind, len(body)) + body


def _is_whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    _, found, rest = head.partition(b"content-length:")
    return len(body) >= (int(rest.split(b"\r\n", 1)[0]) if found else 0)


async def canned(protocol: type[Canned]) -> None:
    """Answer at once until the standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port} e2b_{'0' * 40}", flush=True)
    await _end_of_input()


async def _door() -> None:
    with tempfile.TemporaryDirectory(prefix="excise-bench-") as folder:
        rules = Rules(budget=Budget(sandboxes=SANDBOXES))
        jail = Jail(leases=Path(folder, "leases"))
        cloud = Cloud(pooled(jail, rules), Path(folder, "state"), policy=Policy(limits=LIMITS))
        key, token = new_key("bench", time.time())
        async with serving(cloud, all_doors(), Ring([key])) as desk:
            print(f"{desk.url} {token}", flush=True)
            await _end_of_input()


async def _end_of_input() -> None:
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(canned(Canned) if sys.argv[1] == "canned" else _door())
