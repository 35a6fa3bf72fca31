"""An engine that goes away in the middle of a study, a disk that is full, a study that is killed: what is left of each."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from excise.measure.conduct import planned_trials
from excise.measure.store import read_study
from tests.contract.conftest import need
from tests.kubernetes import pods_of
from tests.lab.conftest import Laboratory

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(300)]

ENGINE = ("dockerd", "containerd", "containerd-shim-runc-v2")


def wait_for_trials(process: subprocess.Popen[str], out: Path, count: int) -> None:
    trials = out / "trials.jsonl"
    while not trials.exists() or trials.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["docker", "docker+agent"])
def test_a_study_whose_engine_goes_away_goes_on_or_stops_as_asked(
    laboratory: Laboratory, name: str, tmp_path: Path
) -> None:
    laboratory.run("up", "docker")
    out = tmp_path / "study"
    words = ("study", "run", "--out", out)
    plan = ("--substrate", name, "--workload", "T0", "--blocks", "14", "--seed", "3")
    running = laboratory.excise(*words, *plan, "--stop-after", "2")
    wait_for_trials(running, out, 9)
    host = laboratory.settings()
    laboratory.kill(*ENGINE)
    said = running.communicate()[1]
    assert running.returncode == 1
    assert f"{name} has failed 2 times in a row" in said
    assert f"excise study run --out {out}" in said
    failed = [t for t in read_study(out).trials if t.outcome != "ok"]
    assert [(t.cell, t.outcome) for t in failed] == [(f"{name}/T0", "substrate_error")] * 2
    assert all(t.error is not None and t.error.phase for t in failed)

    unusable = laboratory.excise(*words, **host)
    assert f"{name} took part and is not usable now" in unusable.communicate()[1]

    laboratory.run("up", "docker")
    running = laboratory.excise(*words)
    wait_for_trials(running, out, 20)
    laboratory.kill(*ENGINE)
    said = running.communicate()[1]
    assert running.returncode == 0, said
    study = read_study(out)
    assert len(study.trials) == planned_trials(study.record)
    outcomes = Counter((t.cell, t.outcome) for t in study.trials)
    assert outcomes[f"{name}/T0", "ok"] > 2
    assert outcomes[f"{name}/T0", "substrate_error"] > 2
    assert not [cell for cell, outcome in outcomes if cell.startswith("bare") and outcome != "ok"]


def test_a_full_disk_is_said_in_one_line(laboratory: Laboratory) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "none", laboratory.folder], check=True
    )
    try:
        laboratory.run("up", "docker")
        found = laboratory.excise("run", "--substrate", "docker", "--", "true")
        said = found.communicate()[1]
        assert found.returncode != 0
        assert "no space left on device" in said
        assert "Traceback" not in said
        laboratory.run("down")
    finally:
        subprocess.run(["umount", laboratory.folder], check=True)


def test_an_image_that_is_not_there_is_bad_input(laboratory: Laboratory) -> None:
    for name in ("docker+agent", "podman+agent"):
        need(name)
        found = laboratory.excise(
            "run", "--substrate", name, "--image", "no/such", "--", "true", **os.environ
        )
        said = found.communicate()[1]
        assert found.returncode == 2
        assert f"{name.partition('+')[0]} pull no/such" in said


CONTAINERS = ("docker", "docker+agent", "podman", "podman+agent", "gvisor", "gvisor+agent")
NAMES = (*CONTAINERS, "kubernetes", "kubernetes+agent", "bwrap", "vm", "vm-uml")


@pytest.mark.parametrize("name", NAMES)
def test_a_study_that_is_killed_leaves_nothing_after_a_sweep(
    laboratory: Laboratory, name: str, tmp_path: Path
) -> None:
    need(name)
    out = tmp_path / "study"
    plan = ("--substrate", name, "--workload", "T0x300", "--blocks", "5")
    running = laboratory.excise("study", "run", "--out", out, *plan, **os.environ)
    while not (left := sandboxes(name, running.pid)):
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.02)
    running.kill()
    running.communicate()
    swept = laboratory.excise("sweep", **os.environ)
    assert swept.wait() == 0
    swept.communicate()
    assert sandboxes(name, running.pid) == [], left


def sandboxes(name: str, owner: int) -> list[str]:
    """What this process has made: containers and pods by their marks, directories by their name."""
    if name.startswith("kubernetes"):
        return pods_of(owner)
    if name not in CONTAINERS:
        below = Path("/var/tmp") if name == "bwrap" else Path(tempfile.gettempdir())
        state = below / f"excise-{os.getuid()}" / name
        return [str(path) for path in state.glob(f"{name}-{owner}-*")]
    host = os.environ["CONTAINER_HOST" if name.startswith("podman") else "DOCKER_HOST"]
    form = '{{.Names}} {{.Label "excise.owner"}}'
    listed = subprocess.check_output(
        ["/usr/bin/docker", "-H", host, "ps", "--all", "--filter", "label=excise=1", "--format", form],
        text=True, env={**os.environ, "DOCKER_API_VERSION": "1.41"},
    )  # fmt: skip
    return [line for line in listed.splitlines() if f"/{owner}/" in line]
