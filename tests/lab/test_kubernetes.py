"""A cluster of a laboratory's own: up twice, killed, used in the middle of that, and gone without a trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from excise.measure.store import read_study
from tests.lab.conftest import Laboratory
from tests.lab.test_faults import wait_for_trials
from tests.lab.test_up_and_down import SYSCTLS

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(300)]

KNOBS = (*SYSCTLS, "vm/panic_on_oom", "kernel/panic_on_oops", "kernel/keys/root_maxkeys")
SERVERS = ("kube-apiserver", "kubelet", "containerd", "etcd")


def traces(laboratory: Laboratory) -> list[str]:
    links = [path.name for path in Path("/sys/class/net").glob("xk*")]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/excise-*/kubepods")]
    return [*laboratory.traces(), *links, *groups]


def knobs() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in KNOBS}


def test_a_cluster_comes_up_twice_survives_a_kill_and_goes_without_a_trace(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    before, others = knobs(), traces(laboratory)
    for _ in range(2):
        assert "up: https://169.254." in laboratory.run("up", "kubernetes").stderr
    assert laboratory.settings()["KUBECONFIG"] == f"{laboratory.folder}/kubernetes/kubeconfig"
    goes_on_without_its_api_server(laboratory, tmp_path / "study")
    assert "runs: " in laboratory.run("status").stderr
    laboratory.kill(*SERVERS)
    laboratory.run("down")
    assert laboratory.traces() == []
    assert traces(laboratory) == others
    assert knobs() == before


def goes_on_without_its_api_server(laboratory: Laboratory, out: Path) -> None:
    name = "kubernetes+agent"
    words = ("study", "run", "--out", out)
    plan = ("--preset", "smoke", "--workload", "T0", "--blocks", "5", "--seed", "3")
    chosen = ("--substrate", f"{name}:wait=answer", "--stop-after", "2")
    running = laboratory.excise(*words, *plan, *chosen)
    wait_for_trials(running, out, 4)
    laboratory.kill("kube-apiserver")
    said = running.communicate()[1]
    assert running.returncode == 1
    assert "has failed 2 times in a row" in said
    failed = [t for t in read_study(out).trials if t.outcome != "ok"]
    assert [t.outcome for t in failed] == ["substrate_error"] * 2
    assert all(t.error is not None and t.error.phase for t in failed)
    laboratory.run("up", "kubernetes")
    running = laboratory.excise(*words)
    said = running.communicate()[1]
    assert running.returncode == 0, said
    outcomes = Counter(t.outcome for t in read_study(out).trials if name in t.cell)
    assert outcomes["ok"] >= 2
    assert outcomes["substrate_error"] == 2
