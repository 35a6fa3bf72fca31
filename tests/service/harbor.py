"""Harbor's own command, in an environment of its own: it needs a newer Python than this project.

`await oracle("daytona", task, out, env)` runs its oracle agent on one task with that provider and tells the trial.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from .installed import python_environment

VERSION = "0.24.0"
OLDEST_PYTHON = (3, 12)
LONGEST_S = 240
NO_PYTHON = "Harbor needs Python 3.12 or newer; `uv python install 3.12` brings one"

ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HARBOR_TELEMETRY": "0",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
}
"""So that it asks nobody on the internet for anything."""


@dataclass(frozen=True)
class Trial:
    """One trial as Harbor recorded it."""

    reward: float | None
    seconds: float
    error: str | None


def need_harbor() -> None:
    """Skip where there is no Python for it, unless the environment says that there must be."""
    if newer_python() is not None:
        return
    if "harbor" in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(NO_PYTHON, pytrace=False)
    pytest.skip(NO_PYTHON)


def harbor() -> Path:
    """The folder of its commands."""
    python = newer_python()
    if python is None:
        raise LookupError(NO_PYTHON)
    return python_environment(f"harbor-{VERSION}", f"harbor[daytona,e2b]=={VERSION}", python=python)


def newer_python() -> str | None:
    """A Python of this host that Harbor runs on."""
    named = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)]
    homes = (Path.home() / ".pyenv" / "versions", Path.home() / ".local/share/uv/python")
    kept = [str(path) for home in homes for path in sorted(home.glob("*3.1[2-4]*/bin/python3"))]
    for python in (*named, *kept):
        if python is not None and _version(python) >= OLDEST_PYTHON:
            return python
    return None


def _version(python: str) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return tuple(int(word) for word in done.stdout.split()) if done.returncode == 0 else ()


def write_task(folder: Path, image: str = "host") -> Path:
    """A task that the oracle solves: one file with one word, and a test that looks for it."""
    files = {
        "task.toml": (
            'version = "1.0"\n[verifier]\ntimeout_sec = 60.0\n[agent]\ntimeout_sec = 60.0\n'
            f'[environment]\nbuild_timeout_sec = 120.0\ndocker_image = "{image}"\n'
            "cpus = 1\nmemory_mb = 1024\nstorage_mb = 2048\n"
        ),
        "instruction.md": "Write the word hello to /work/hello.txt.\n",
        "environment/Dockerfile": f"FROM {image}\n",
        "solution/solve.sh": "#!/bin/bash\nmkdir -p /work\necho hello > /work/hello.txt\n",
        "tests/test.sh": (
            '#!/bin/bash\nif [ "$(cat /work/hello.txt)" = hello ]; then echo 1; else echo 0; fi'
            " > /logs/verifier/reward.txt\n"
        ),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tomllib.loads(files["task.toml"])
    return folder


async def oracle(
    provider: str, task: Path, out: Path, env: dict[str, str], *, trials: int = 1
) -> list[Trial]:
    """Solve the task with its own solution, that many times, one after the other."""
    command = str(await asyncio.to_thread(harbor) / "harbor")
    words = ["run", "-p", str(task), "-a", "oracle", "-e", provider, "-o", str(out)]
    words += ["-k", str(trials), "-n", "1", "-q"]
    pipe = asyncio.subprocess.PIPE
    clean = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    process = await asyncio.create_subprocess_exec(
        command, *words, env=clean | ENVIRONMENT | env, stdout=pipe, stderr=pipe, cwd=out.parent
    )
    try:
        said, failed = await asyncio.wait_for(process.communicate(), LONGEST_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    found = await asyncio.to_thread(lambda: [told(path) for path in out.glob("*/*/result.json")])
    assert found, (said + failed).decode()[-4000:]
    return found


def told(result: Path) -> Trial:
    """One trial's result file."""
    read = json.loads(result.read_text())
    at = [datetime.fromisoformat(read[key]) for key in ("started_at", "finished_at")]
    rewards = (read.get("verifier_result") or {}).get("rewards") or {}
    error = (read.get("exception_info") or {}).get("exception_message")
    return Trial(rewards.get("reward"), (at[1] - at[0]).total_seconds(), error)
