"""The internal form of a recorded trajectory: JSON lines, one head and then one line per action.

Format history
1  2026-11  first
"""

from __future__ import annotations

from hashlib import sha256
from typing import TypeVar

import msgspec

from excise.errors import InputError

FORMAT = 1

_Shape = TypeVar("_Shape", bound=msgspec.Struct)


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """One recorded action. Editor verbs are commands too: a shim in the sandbox understands them."""

    i: int
    kind: str
    command: str
    timeout_s: float = 60.0
    cwd: str | None = None
    """As recorded: an absolute path below the recording's root."""
    think_s: float | None = None
    """What the model took before this action."""
    rc: int | None = None
    """The recorded exit code; -1 where the command was cut off."""
    obs: str | None = None
    obs_sha: str | None = None
    obs_len: int | None = None
    recorded_s: float | None = None


class Recording(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole recorded trajectory; `root` is where the repository was when it was recorded."""

    source: str
    root: str
    env: dict[str, str] = {}
    actions: tuple[Recorded, ...] = ()


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    replay: int
    source: str
    root: str
    env: dict[str, str] = {}


def observed(text: str | None) -> dict[str, str | int | None]:
    """The fields that say what was observed; kept whole, so that similarity can be told later."""
    if text is None:
        return {}
    data = text.encode("utf-8", "surrogatepass")
    return {"obs": text, "obs_sha": sha256(data).hexdigest(), "obs_len": len(data)}


def dump(recording: Recording) -> bytes:
    """The recording as JSON lines."""
    head = _Head(FORMAT, recording.source, recording.root, recording.env)
    return msgspec.json.Encoder().encode_lines([head, *recording.actions])


def load(data: bytes) -> Recording:
    """A recording from its JSON lines, or an InputError that names the line that is wrong."""
    head, *actions = [line for line in data.split(b"\n") if line.strip()]
    opening = _decode(head, 1, _Head)
    if opening.replay != FORMAT:
        raise InputError(f"replay format {opening.replay} is not {FORMAT}: import it again")
    taken = tuple(_decode(line, number, Recorded) for number, line in enumerate(actions, start=2))
    return Recording(opening.source, opening.root, opening.env, taken)


def _decode(line: bytes, number: int, shape: type[_Shape]) -> _Shape:
    try:
        return msgspec.json.decode(line, type=shape)
    except msgspec.MsgspecError as error:
        raise InputError(f"line {number} of the replay is not as it should be: {error}") from error
