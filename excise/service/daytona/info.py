"""Small questions about the inside of a sandbox."""

from __future__ import annotations

from aiohttp import web

from excise.service.daytona import place
from excise.service.daytona.call import Inside, answer, whole
from excise.service.daytona.describe import DAEMON_VERSION
from excise.service.daytona.process import run
from excise.types import Action

_LISTENS = "0A"
"""How /proc/net/tcp says that a socket listens."""


async def init(call: Inside) -> web.StreamResponse:
    """There is no daemon inside that would have to be told anything."""
    del call
    return answer({"message": "ready"})


async def version(call: Inside) -> web.StreamResponse:
    del call
    return answer({"version": DAEMON_VERSION})


async def work_dir(call: Inside) -> web.StreamResponse:
    return answer({"dir": await place.workdir(call)})


async def user_home_dir(call: Inside) -> web.StreamResponse:
    return answer({"dir": await place.home(call)})


async def ports(call: Inside) -> web.StreamResponse:
    return answer({"ports": await _listening(call)})


async def port_in_use(call: Inside) -> web.StreamResponse:
    port = whole(call.words[0], "port", 1, 65535)
    return answer({"isInUse": port in await _listening(call)})


async def _listening(call: Inside) -> list[int]:
    action = Action.shell("cat /proc/net/tcp /proc/net/tcp6 2>/dev/null", timeout_s=10.0)
    return listening((await run(call, action)).stdout.decode("ascii", "replace"))


def listening(table: str) -> list[int]:
    """The ports in the kernel's table of connections at which something listens."""
    rows = (line.split() for line in table.splitlines())
    found = {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if len(row) > 3 and row[3] == _LISTENS and ":" in row[1]
    }
    return sorted(found)
