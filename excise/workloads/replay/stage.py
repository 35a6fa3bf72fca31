"""Recorded actions as steps for a sandbox of ours: paths moved to where the repository now is, verbs on PATH."""

from __future__ import annotations

import re
import shlex

from excise.workloads.actions import here_document
from excise.workloads.base import Step
from excise.workloads.replay.editor import VERBS
from excise.workloads.replay.form import Recorded, Recording

FOLDER = ".excise-replay"
"""Beside the repository, not in it: a replay must not find its own tools."""

SUBMIT = "git add -A && git diff --cached"


def installation(editor: str, python: str) -> Step:
    """Puts the editor program and one small command per verb into the workspace."""
    tools = '"${0%/*}/../'
    call = f'exec {shlex.quote(python)} {tools}editor.py" {tools}state.json"'
    lines = [f"mkdir -p {FOLDER}/bin", f"cat > {FOLDER}/editor.py {here_document(editor)}"]
    for verb in VERBS:
        body = shlex.quote(f'{call} {verb} "$@"')
        lines.append(f"printf '%s\\n' '#!/bin/sh' {body} > {FOLDER}/bin/{verb}")
    submit = shlex.quote(SUBMIT)
    lines.append(f"printf '%s\\n' '#!/bin/sh' {submit} > {FOLDER}/bin/submit")
    lines.append(f"chmod +x {FOLDER}/bin/*")
    return Step("set_up", "\n".join(lines), what="install-editor")


def staged(
    recording: Recording, *, workspace: str, repository: str, python: str = "python3"
) -> tuple[Step, ...]:
    """The steps, for a sandbox whose workspace and repository are at these absolute paths.

    The verbs come first on PATH, then the directory of an interpreter that was named by its path.
    """
    first = [f"{workspace}/{FOLDER}/bin", *([python.rpartition("/")[0]] if "/" in python else [])]
    path = f'export PATH={shlex.quote(":".join(first))}:"$PATH"'
    return tuple(_step(recording, action, path, repository) for action in recording.actions)


def moved(text: str, old: str, new: str) -> str:
    """The text with one root directory for another, where it stands as a path of its own."""
    pattern = rf"(?<![\w./~-]){re.escape(old.rstrip('/'))}(?=/|[^\w.-]|$)"
    return re.sub(pattern, lambda _: new, text)


def _step(recording: Recording, action: Recorded, path: str, repository: str) -> Step:
    env = {name: moved(value, recording.root, repository) for name, value in recording.env.items()}
    return Step(
        action.kind,
        f"{path}\n{moved(action.command, recording.root, repository)}",
        timeout_s=action.timeout_s,
        exit_code=None,
        cwd=moved(action.cwd, recording.root, repository) if action.cwd else repository,
        env=env,
    )
