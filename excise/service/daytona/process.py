"""Commands and code that are run to their end and answered at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from excise.errors import InputError
from excise.service.daytona import place
from excise.service.daytona.asked import CodeRun, Execute, UpdateEnv
from excise.service.daytona.call import Here, Inside, answer
from excise.service.daytona.code import script_of
from excise.service.daytona.errors import Told
from excise.service.daytona.versions import unwrapped
from excise.types import Action, Fault, Observation

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


async def execute(call: Inside) -> web.StreamResponse:
    return answer(await executed(call, await call.body(Execute)))


async def code_run(call: Inside) -> web.StreamResponse:
    return answer(await code_ran(call, await call.body(CodeRun)))


async def executed(call: Here, asked: Execute) -> Mapping[str, object]:
    """One command in a shell of its own; both of its streams come back as one, in order."""
    if not asked.command.strip():
        raise InputError("command cannot be empty")
    command, envs = unwrapped(asked.command) or (asked.command, asked.envs)
    action = Action.shell(
        place.unsetting(call) + command,
        merge=True,
        cwd=await place.cwd(call, asked.cwd),
        env=place.variables(call, checked(envs)),
        timeout_s=seconds(asked.timeout),
    )
    found = await run(call, action)
    return {"exitCode": found.exit_code, "result": found.text}


async def code_ran(call: Here, asked: CodeRun) -> Mapping[str, object]:
    """Code in a language that the sandbox has a program for."""
    action = Action.shell(
        place.unsetting(call) + script_of(asked.language, asked.argv or []),
        merge=True,
        cwd=await place.cwd(call, None),
        env=place.variables(call, checked(asked.envs)),
        stdin=asked.code.encode(),
        timeout_s=seconds(asked.timeout),
    )
    found = await run(call, action)
    return {"exitCode": found.exit_code, "result": found.text, "artifacts": {"charts": []}}


async def update_env(call: Inside) -> web.StreamResponse:
    """Variables of the commands that start from now on."""
    asked = await call.body(UpdateEnv)
    set_, unset = checked(asked.set), set(checked(dict.fromkeys(asked.unset or [], "")))
    room = call.room
    room.env = {name: v for name, v in (room.env | set_).items() if name not in unset}
    room.unset = (room.unset - set(set_)) | unset
    return answer({"message": "the environment was updated"})


async def run(call: Here, action: Action) -> Observation:
    """The action as the sandbox's user; Told if it took too long."""
    found = await call.cloud.run(call.box, as_user(call, action))
    if found.fault is Fault.MISSING_PROGRAM and action.argv[0] == "bash":
        action = replace(action, argv=("sh", *action.argv[1:]))
        found = await call.cloud.run(call.box, as_user(call, action))
    if found.timed_out:
        raise Told(408, "PROCESS_EXECUTION_TIMEOUT", "command execution timeout")
    if found.fault is Fault.MISSING_CWD:
        raise FileNotFoundError(2, "no such directory", action.cwd or "")
    return found


def as_user(call: Here, action: Action) -> Action:
    return replace(action, user=call.room.user(call.box))


def seconds(timeout: float | None) -> float | None:
    """A time limit as asked for: none, where none or 0 is given."""
    if timeout is not None and not 0 <= timeout < 2**31:
        raise InputError(f"a timeout of {timeout:g} s: give 0 or more")
    return timeout or None


def checked(envs: Mapping[str, str] | None) -> dict[str, str]:
    """Variables whose names a shell takes."""
    for name, value in (envs or {}).items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise InputError(
                f"{name[:80]!r} is no name of a variable, or its value has a zero byte"
            )
    return dict(envs or {})
