"""git without anybody's configuration, so that the same files give the same ids everywhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from excise.errors import TaskError

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "rollout-bench"),
        ("EMAIL", "bench@localhost"),
        ("DATE", "1700000000 +0000"),
    )
}
_SETTINGS = (
    "core.autocrlf=false",
    "core.fileMode=true",
    "core.logAllRefUpdates=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "advice.detachedHead=false",
    "gc.auto=0",
    "safe.directory=*",
)


def run(
    *arguments: str | Path, cwd: Path, stdin: bytes = b"", settings: Sequence[str] = ()
) -> bytes:
    """The output of one git command; TaskError with git's last words if it fails."""
    chosen = (part for setting in (*_SETTINGS, *settings) for part in ("-c", setting))
    command = ["git", *chosen, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment(), input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise TaskError("git is not installed; install it to rebuild tasks") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise TaskError(f"git {arguments[0]} failed: {said[-1]}")
    return done.stdout


def text(*arguments: str | Path, cwd: Path) -> str:
    """The output of one git command as one stripped string."""
    return run(*arguments, cwd=cwd).decode("utf-8").strip()


def environment() -> dict[str, str]:
    """Of a git that reads nobody's settings, asks nothing, and commits as the benchmark."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    proxied = {k: v for k, v in os.environ.items() if k in {"GIT_SSL_CAINFO", "GIT_EXEC_PATH"}}
    alone = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TEMPLATE_DIR": "",
        "LC_ALL": "C",
    }
    return {**kept, **proxied, **alone, **_IDENTITY}
