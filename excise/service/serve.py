"""A service in this event loop: from a cloud and doors to something that listens, and back to nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from excise.service.app import application
from excise.service.cloud import Cloud
from excise.service.doors import Desk, Door
from excise.service.gate import Gates
from excise.service.hurried import hurried
from excise.service.keys import Ring
from excise.service.reaper import reap

LOOPBACK = "127.0.0.1"
NEVER_S = 10.0 * 365 * 86_400
"""For what the gate looks after instead of aiohttp."""

BACKLOG = 1024
LONGEST_LINE = 16 * 1024
LONGEST_HEADER = 16 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0: any that is free."""

    host: str = LOOPBACK
    port: int = 0


@asynccontextmanager
async def serving(
    cloud: Cloud,
    doors: Sequence[Door],
    ring: Ring,
    *,
    address: Address = Address(),
    tls: ssl.SSLContext | None = None,
    domain: str | None = None,
) -> AsyncIterator[Desk]:
    """Serve while the block runs; at its end every sandbox is ended and the substrate let go of."""
    desk = Desk(cloud, ring, domain=domain)
    runner = web.AppRunner(
        application(desk, doors),
        access_log=None,
        keepalive_timeout=NEVER_S,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_HEADER,
        shutdown_timeout=1.0,
    )
    loop = asyncio.get_running_loop()
    await runner.setup()
    assert runner.server is not None
    told = cloud.metrics.failed
    gates = Gates(runner.server, hurried(desk, doors), refused=lambda kind: told(kind, None))
    behind = [asyncio.create_task(reap(cloud)), asyncio.create_task(gates.watch())]
    server = None
    try:
        server = await loop.create_server(
            gates, address.host, address.port, ssl=tls, backlog=BACKLOG, reuse_address=True
        )
        host, port, *_ = server.sockets[0].getsockname()
        scheme = "https" if tls else "http"
        desk.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        yield desk
    finally:
        cloud.draining = True
        if server is not None:
            server.close()
        gates.close()
        await runner.cleanup()
        for task in behind:
            task.cancel()
        await asyncio.gather(*behind, return_exceptions=True)
        await cloud.close()
