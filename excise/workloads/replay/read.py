"""A recording from the bytes of any known trajectory file, told apart by what is in it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from excise.errors import InputError
from excise.workloads.replay import form, mini, swe_agent
from excise.workloads.replay.form import Recording

KNOWN = "mini-swe-agent .traj.json, SWE-agent .traj, excise replay JSON lines"


def read(data: bytes, name: str) -> Recording:
    """The recording; InputError says which formats are known where it is none of them."""
    ours = data.lstrip()[:9] == b'{"replay"'
    recording = form.load(data) if ours else _imported(data, name)
    if not recording.actions:
        raise InputError(f"{name} records no action: there is nothing to replay")
    return recording


def _imported(data: bytes, name: str) -> Recording:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise InputError(f"{name} is not JSON ({error}); known formats: {KNOWN}") from error
    try:
        recording = _known(document)
        if recording is not None:
            return msgspec.convert(msgspec.to_builtins(recording), Recording)
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
        raise InputError(f"{name} is not a whole trajectory: {error!r}") from error
    raise InputError(f"{name} is no trajectory that is known; known formats: {KNOWN}")


def _known(document: Any) -> Recording | None:
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("messages"), list):
        return mini.read(document)
    if isinstance(document.get("trajectory"), list):
        return swe_agent.read(document)
    return None
