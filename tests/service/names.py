"""A name server for a domain of a test's own, and commands that see the host as if it were the one to ask."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_QUESTION, _ADDRESS = 12, b"\x00\x01"
_ASK = (
    'mount --bind "$1" /etc/resolv.conf; mount --bind "$2" /etc/nsswitch.conf; shift 2; exec "$@"'
)


class _Server(asyncio.DatagramProtocol):
    """Every name leads to this host."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(b"\0", _QUESTION) + 5
        question = data[_QUESTION:end]
        known = question[-4:-2] == _ADDRESS
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("127.0.0.1") if known else b""
        head = data[:2] + b"\x81\x80\0\1" + (b"\0\1" if known else b"\0\0") + b"\0\0\0\0"
        self._transport.sendto(head + question + answer, addr)  # type: ignore[attr-defined]


@asynccontextmanager
async def named(folder: Path) -> AsyncIterator[tuple[str, ...]]:
    """Words to put before a command: for it and for nobody else, every name leads to this host."""
    chosen = random.SystemRandom()
    address = f"127.53.{chosen.randrange(256)}.{chosen.randrange(1, 255)}"
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(_Server, local_addr=(address, 53))
    resolver, order = folder / "resolv.conf", folder / "nsswitch.conf"
    resolver.write_text(f"nameserver {address}\n")
    order.write_text("passwd: files\ngroup: files\nhosts: dns\n")
    apart = ("unshare", "--mount", "--propagation", "private", "sh", "-e", "-c", _ASK, "sh")
    try:
        yield (*apart, str(resolver), str(order))
    finally:
        transport.close()
