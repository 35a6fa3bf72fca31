"""Where and as whom something happens in a sandbox: relative paths, its user, the variables set since it was made."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from excise.errors import Phase, SubstrateError
from excise.service.daytona.call import Here
from excise.service.people import ROOT, Person
from excise.types import Action


async def workdir(call: Here) -> str:
    """Where its commands start."""
    known = call.box.workdir or call.room.workdir
    if known is None:
        found = await call.cloud.run(call.box, Action(("pwd",), timeout_s=30.0))
        known = found.stdout.decode("utf-8", "replace").strip()
        if not known.startswith("/"):
            text = "nobody can tell where commands start in this sandbox"
            raise SubstrateError(text, substrate="daytona", phase=Phase.RUN)
        call.room.workdir = known
    return known


async def path(call: Here, given: str) -> str:
    """An absolute path: a relative one counts from where commands start, `~` is the user's home."""
    if given.startswith("/"):
        return given
    if given == "~" or given.startswith("~/"):
        return posixpath.join(await home(call), given[2:])
    return posixpath.join(await workdir(call), given)


async def home(call: Here) -> str:
    return (await person(call)).home


async def person(call: Here) -> Person:
    """Whom files are written for."""
    user = call.room.user(call.box)
    return (
        ROOT if user in {None, "root", "0"} else await call.cloud.files(call.box).person(user or "")
    )


def variables(call: Here, envs: Mapping[str, str] | None) -> dict[str, str]:
    """Those set since the sandbox was made, and those of this command."""
    return {**call.room.env, **(envs or {})}


def unsetting(call: Here) -> str:
    """What to put before a script so that variables that were taken away are not there."""
    return f"unset {' '.join(sorted(call.room.unset))}\n" if call.room.unset else ""


async def cwd(call: Here, given: str | None) -> str | None:
    """The directory of a command; None: where all start."""
    return await path(call, given) if given else call.box.workdir
