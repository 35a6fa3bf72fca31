"""Operations on the service itself."""

from __future__ import annotations

from typing import Any

from aiohttp import web

import excise
from excise.service import rollout_file, watching
from excise.service.keys import Scope
from excise.service.native.lines import Lines
from excise.service.native.operation import Call, Operation
from excise.substrates import base
from excise.substrates.remote import wire

ABILITIES: dict[str, Any] = {
    "files": base.Files,
    "tree": base.Tree,
    "shells": base.Shells,
    "streams": base.Streams,
    "reset": base.Resettable,
    "prove": base.Proves,
    "snapshots": base.Snapshots,
    "forks": base.Forks,
    "pauses": base.Pauses,
    "quiets": base.Quiets,
}


async def get_service(call: Call) -> wire.ServiceWire:
    substrate = call.desk.cloud.substrate
    facts = await substrate.describe() if isinstance(substrate, base.Describes) else {}
    timed = isinstance(substrate, base.TimesInside) and substrate.times_inside
    return wire.ServiceWire(
        excise.__version__,
        substrate.name,
        substrate.isolation.name.lower(),
        [name for name, ability in ABILITIES.items() if isinstance(substrate, ability)],
        timed,
        facts,
    )


async def get_live(call: Call) -> dict[str, Any]:
    owner = None if call.key.scope is Scope.WATCH else call.owner
    return watching.live(call.desk.cloud, owner)


async def get_timeline(call: Call) -> dict[str, Any]:
    cloud, id_ = call.desk.cloud, call.request.match_info["id"]
    if call.key.scope is Scope.WATCH:
        return watching.timeline(cloud, cloud.census.watched(id_))
    return watching.timeline(cloud, cloud.find(call.owner, id_))


async def list_rollouts(call: Call) -> web.StreamResponse:
    """Only a watcher's: a record names no owner."""
    async with Lines(call) as said:
        for line in rollout_file.lines(call.desk.cloud.folder):
            await said.line(line)
    return said.response


OPERATIONS = (
    Operation("GET", "/service", "What is served here.", get_service, None, wire.ServiceWire),
    Operation(
        "GET", "/live", "What the page shows; a watcher sees everybody's.",
        get_live, None, dict[str, Any], scope=Scope.ANY,
    ),
    Operation(
        "GET", "/sandboxes/{id}/timeline", "When each action was sent and answered.",
        get_timeline, None, dict[str, Any], scope=Scope.ANY,
    ),
    Operation(
        "GET", "/rollouts", "The record of every rollout that is kept, a line each.",
        list_rollouts, None, dict[str, Any], scope=Scope.WATCH, lines=True,
    ),
)  # fmt: skip
