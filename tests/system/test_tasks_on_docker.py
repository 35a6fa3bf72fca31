"""A task on a real Docker Engine: proven there, and acted on as on the bare process.

Needs the package index once, to rebuild the task.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from excise.measure.store import read_study
from excise.substrates.registry import availability

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(300)]
TASK = "attrs-1417"
MAIN = "from excise.cli import main; raise SystemExit(main())"


@pytest.fixture(autouse=True)
def _engine() -> None:
    found = asyncio.run(availability("docker"))
    if not found.usable and "docker" in os.environ.get("EXCISE_REQUIRE", ""):
        pytest.fail(f"{found.reason} ({found.remedy})", pytrace=False)
    if not found.usable:
        pytest.skip(f"{found.reason} ({found.remedy})")


def excise(*words: str) -> str:
    """Its own process: a study binds itself to cores."""
    command = [sys.executable, "-c", MAIN, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_task_is_what_it_says_in_a_container_too() -> None:
    said = excise("task", "verify", TASK, "--substrate", "docker")
    assert f"{TASK} on docker: tests that go from failing to passing: 1" in said
    assert "pass before and after: 13" in said


def test_a_fix_gives_the_same_observations_in_a_container(tmp_path: Path) -> None:
    plan = ("--substrate", "docker", "--workload", f"T2:{TASK}", "--blocks", "1")
    excise("study", "run", *plan, "--out", str(tmp_path / "out"))
    study = read_study(tmp_path / "out")
    outcomes = {(t.cell.partition("/")[0], t.outcome) for t in study.trials}
    assert outcomes == {("bare", "ok"), ("bare-again", "ok"), ("docker", "ok")}
    for trial in study.trials:
        acted = (*trial.set_up, *trial.actions)
        assert [action.golden for action in acted] == [True] * 14
    assert "golden" not in {doubt.kind for doubt in study.record.doubts}
