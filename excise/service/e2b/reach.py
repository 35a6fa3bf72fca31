"""Which sandbox a request to the daemon inside is meant for, whether it may reach it, and as whom."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping

from excise.errors import InputError, Phase, SandboxGone
from excise.service.doors import Desk
from excise.service.errors import NAME, Unauthorized
from excise.service.files import Files
from excise.service.heads import token_of
from excise.service.people import Person
from excise.service.sandbox import Sandbox, State

DAEMON_PORT = 49983
"""Where the SDKs believe that the sandbox's daemon listens."""

PERSON = "user"
"""Who acts in a sandbox unless somebody else is named."""

_HOST = re.compile(r"(\d{1,5})-([a-z2-7]{20})\.")


def address_of(headers: Mapping[str, str]) -> tuple[str, int] | None:
    """The sandbox and port that headers or the host's name point to."""
    named = headers.get("e2b-sandbox-id")
    if named:
        port = headers.get("e2b-sandbox-port", "")
        return named, int(port) if port.isascii() and port.isdigit() else DAEMON_PORT
    found = _HOST.match(headers.get("host", ""))
    return (found[2], int(found[1])) if found else None


async def reached(desk: Desk, headers: Mapping[str, str]) -> Sandbox:
    """The sandbox, running, for whoever shows its token or its owner's key."""
    address = address_of(headers)
    token = headers.get("x-access-token")
    if address is None and token is None:
        raise InputError("which sandbox? Send the header E2b-Sandbox-Id, or use its host name")
    id_, port = address or (None, DAEMON_PORT)  # old SDKs show the token alone
    if port != DAEMON_PORT:
        text = (
            f"port {port} of sandbox {str(id_)[:80]}: The port is not open (only {DAEMON_PORT} is)"
        )
        raise SandboxGone(text, substrate=NAME, phase=Phase.RUN)
    if token is not None:
        sandbox = desk.cloud.by_token(id_, token)
        desk.count(sandbox.owner)
    elif (key := token_of(headers.get("x-api-key"), headers.get("authorization"))) is not None:
        sandbox = desk.cloud.find(desk.owner(key), str(id_))
    else:
        raise Unauthorized("no access token: send the sandbox's as X-Access-Token")
    await awake(desk, sandbox)
    return sandbox


async def awake(desk: Desk, sandbox: Sandbox) -> None:
    """It runs, or is resumed if its owner wanted that; else it is as good as gone until he resumes it."""
    if sandbox.state is State.RUNNING:
        return
    if sandbox.state is State.PAUSED and sandbox.notes.get("auto_resume"):
        await desk.cloud.resume(sandbox)
        return
    text = f"sandbox {sandbox.id} is {sandbox.state}: connect to it, and it goes on"
    raise SandboxGone(text, substrate=NAME, phase=Phase.RUN)


def user_of(headers: Mapping[str, str]) -> str | None:
    """As whom to act: the name before the colon of basic authorization."""
    kind, _, rest = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name = b64decode(rest, validate=True).decode().partition(":")[0]
    except (NotBase64, ValueError):
        raise Unauthorized("the authorization is not a user's name and a colon in base64") from None
    return name or None


async def person_of(files: Files, sandbox: Sandbox, name: str | None) -> Person:
    """The user of that name, or the sandbox's own."""
    try:
        return await files.person(name or sandbox.user or "root")
    except InputError as error:
        if name is None:
            raise
        raise Unauthorized(f"{error}") from error
