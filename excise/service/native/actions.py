"""Operations that run commands to their end: actions, and scripts in persistent shells.

An action may be given an id by its client. Then it is run once, however often it is asked for: whoever lost the
connection asks again and hears how it ended; and it can be killed by that id.
"""

from __future__ import annotations

import re

import msgspec

from excise.errors import InputError
from excise.service.cloud import Cloud
from excise.service.doors import Desk
from excise.service.gate import Answer, Asked, Quick
from excise.service.native.operation import Call, Operation, Query, decoded
from excise.service.sandbox import Sandbox
from excise.substrates.remote import wire
from excise.substrates.remote.convert import action_of, wire_of

ID = Query("Action-Id", str, "Asking again under it gives the same observation.", most=64)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_decode = msgspec.json.Decoder(wire.ActionWire).decode
_encode = msgspec.json.Encoder().encode


async def run_action(call: Call) -> wire.ObservationWire:
    id_ = call.request.headers.get(wire.ACTION_ID)
    return await _run(call.desk.cloud, call.sandbox(), call.body, id_)


def quick_run(desk: Desk) -> Quick:
    """The same, without aiohttp: the request that a rollout makes again and again."""
    cloud = desk.cloud

    async def run(asked: Asked) -> Answer:
        sandbox = cloud.find(desk.owner(asked.token), asked.parts[0])
        action = decoded(_decode, asked.body)
        found = await _run(cloud, sandbox, action, asked.head.fields.get("action-id"))
        return 200, b"application/json", _encode(found)

    return run


async def _run(
    cloud: Cloud, sandbox: Sandbox, asked: wire.ActionWire, id_: str | None
) -> wire.ObservationWire:
    action = action_of(asked)
    if id_ is None:
        return wire_of(await cloud.run(sandbox, action))
    if not _ID.fullmatch(id_):
        raise InputError(f"{wire.ACTION_ID} is 1 to 64 letters, digits, _ or -, not {id_[:80]!r}")
    return wire_of(await cloud.actions.run(sandbox, id_, action))


async def cancel_action(call: Call) -> None:
    await call.desk.cloud.actions.cancel(call.sandbox(), call.request.match_info["action"])


async def open_shell(call: Call) -> wire.ShellWire:
    return wire.ShellWire(await call.desk.cloud.shells.open(call.sandbox()))


async def run_in_shell(call: Call) -> wire.ObservationWire:
    asked, shell = call.body, call.request.match_info["shell"]
    shells = call.desk.cloud.shells
    found = await shells.run(call.sandbox(), shell, asked.script, asked.timeout_s)
    return wire_of(found)


async def close_shell(call: Call) -> None:
    await call.desk.cloud.shells.close(call.sandbox(), call.request.match_info["shell"])


ONE = "/sandboxes/{id}"
OPERATIONS = (
    Operation(
        "POST", f"{ONE}/run", "Run one command to its end; however it ends, this succeeds.",
        run_action, wire.ActionWire, wire.ObservationWire, headers=(ID,),
    ),
    Operation(
        "DELETE", f"{ONE}/actions/{{action}}", "Kill an action that was given this id.",
        cancel_action, status=204,
    ),
    Operation(
        "POST", f"{ONE}/shells", "Open a shell that stays.", open_shell, None, wire.ShellWire, 201
    ),
    Operation(
        "POST", f"{ONE}/shells/{{shell}}/run", "Run a script in it.",
        run_in_shell, wire.ScriptWire, wire.ObservationWire,
    ),
    Operation("DELETE", f"{ONE}/shells/{{shell}}", "End it.", close_shell, status=204),
)  # fmt: skip
