"""From an action to what the agent is asked: directories, variables and users put together, purely."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from excise.agent.messages import Exec, Packed, pack_env
from excise.errors import InputError
from excise.types import Action

WORKSPACE = "/work"


@dataclass(frozen=True, slots=True)
class Habits:
    """What holds for every command of one sandbox unless the action says otherwise."""

    env: Mapping[str, str]
    packed: Packed
    user: str
    workspace: str = WORKSPACE

    @classmethod
    def of(cls, env: Mapping[str, str], user: str | None, workspace: str = WORKSPACE) -> Habits:
        return cls(env, pack_env(env), user or "", workspace)


def exec_of(
    action: Action, habits: Habits, argv: tuple[str, ...] | None = None, *, one_shot: bool = False
) -> Exec:
    """The request for this action; `argv` where it had to be shortened."""
    env = pack_env({**habits.env, **action.env}) if action.env else habits.packed
    return Exec(
        argv if argv is not None else action.argv,
        cwd=directory(action.cwd, habits),
        env=env,
        user=habits.user if action.user is None else action.user,
        stdin=action.stdin,
        timeout_s=action.timeout_s,
        output_limit=action.output_limit_bytes,
        one_shot=one_shot and is_script(action),
    )


def is_script(action: Action) -> bool:
    """What a bash that was started ahead can run as well."""
    return len(action.argv) == 3 and action.argv[:2] == ("bash", "-c") and not action.stdin


def directory(cwd: str | None, habits: Habits) -> str:
    """A relative directory counts from the workspace."""
    return habits.workspace if cwd is None else posixpath.join(habits.workspace, cwd)


def place(path: str, habits: Habits) -> str:
    """A relative path counts from the workspace."""
    if "\0" in path or not path:
        raise InputError(f"{path!r} is not a path")
    return posixpath.join(habits.workspace, path)
