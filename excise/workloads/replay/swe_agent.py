"""SWE-agent's `.traj`: bash and editor verbs typed into one shell; tool times, but no exit codes.

The shell's directory survived from action to action, so each action gets the directory that the state
recorded before it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from excise.workloads.replay.classify import classify
from excise.workloads.replay.form import Recorded, Recording, observed

SOURCE = "swe-agent"
TIMEOUT_S = 60.0

_EDIT_LINES = re.compile(r"\s*(edit\s+\d+:\d+)[ \t]*\n(.*?)\n?end_of_edit\s*", re.DOTALL)


def read(document: Mapping[str, Any]) -> Recording:
    """The recording in a decoded `.traj`."""
    steps: Sequence[Mapping[str, Any]] = document["trajectory"]
    states = [_state(step) for step in steps]
    known = [state["working_dir"] for state in states if state.get("working_dir")]
    root = str(known[0]) if known else "/testbed"
    actions: list[Recorded] = []
    cwd = root
    for step, state in zip(steps, states, strict=True):
        command = str(step.get("action") or "").strip("\n")
        if command.strip():
            actions.append(
                Recorded(
                    i=len(actions),
                    kind=classify(command),
                    command=as_typed(command),
                    timeout_s=TIMEOUT_S,
                    cwd=cwd,
                    recorded_s=step.get("execution_time"),
                    **_observed(step.get("observation")),
                )
            )
        cwd = str(state.get("working_dir") or cwd)
    return Recording(SOURCE, root, {}, tuple(actions))


def as_typed(command: str) -> str:
    """An `edit N:M` that ends in `end_of_edit`, as the here-document it was typed as."""
    found = _EDIT_LINES.fullmatch(command)
    return f"{found[1]} <<'end_of_edit'\n{found[2]}\nend_of_edit" if found else command


def _state(step: Mapping[str, Any]) -> dict[str, Any]:
    """An object, or the text of one; SWE-agent has written both."""
    state = step.get("state") or {}
    if isinstance(state, str):
        try:
            state = json.loads(state)
        except ValueError:
            state = {}
    return dict(state) if isinstance(state, dict) else {}


def _observed(text: object) -> dict[str, Any]:
    return observed(text.replace("\r\n", "\n")) if isinstance(text, str) else {}
