"""A laboratory of its own comes up, is the same the second time, survives kills, and goes without a trace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import LAB, Laboratory

SYSCTLS = ("net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic")

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(240)]


def knobs() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in SYSCTLS}


def test_all_of_it_comes_up_twice_and_goes_without_a_trace(laboratory: Laboratory) -> None:
    before = knobs()
    for _ in range(2):
        assert "done" in laboratory.run("up", "docker", "podman", "gvisor").stderr
    assert laboratory.settings() == {
        "DOCKER_HOST": f"unix://{laboratory.folder}/docker/docker.sock",
        "CONTAINER_HOST": f"unix://{laboratory.folder}/podman/podman.sock",
    }
    assert "runsc" in laboratory.docker("info", "--format", "{{json .Runtimes}}")
    bridge = laboratory.docker("network", "inspect", "excise-lab", "--format", "{{.Id}}")[:12]
    assert Path("/sys/class/net", f"br-{bridge}").exists()
    assert laboratory.run("status").stderr.count("\n") >= 3
    laboratory.run("down")
    assert laboratory.traces() == []
    assert not Path("/sys/class/net", f"br-{bridge}").exists()
    assert knobs() == before


def test_the_parts_of_a_vm_come_once_and_go_without_a_trace(laboratory: Laboratory) -> None:
    assert "fetching" in laboratory.run("up", "vm").stderr
    assert "fetching" not in laboratory.run("up", "vm").stderr
    assert laboratory.settings() == {"EXCISE_VM": f"{laboratory.folder}/vm"}
    assert "there" in laboratory.run("vm", "status").stderr
    laboratory.run("down")
    assert laboratory.traces() == []


def test_what_was_killed_comes_up_again_and_goes_all_the_same(laboratory: Laboratory) -> None:
    laboratory.run("up", "docker", "podman")
    laboratory.kill("dockerd", "podman", "containerd")
    laboratory.run("up", "docker", "podman")
    assert laboratory.docker("version", "--format", "{{.Server.Version}}")
    laboratory.kill("dockerd", "podman", "containerd")
    laboratory.run("down")
    assert laboratory.traces() == []


def test_what_there_is_not_is_said_and_nothing_is_done(laboratory: Laboratory) -> None:
    for script in ("up", "down"):
        found = laboratory.run(script, "docker", "hypercube", check=False)
        assert found.returncode == 2
        assert "there is no hypercube; there are: docker podman" in found.stderr
    assert laboratory.traces() == []


def test_an_engine_of_somebody_elses_is_used_and_left_alone(laboratory: Laboratory) -> None:
    laboratory.run("up", "docker")
    host = laboratory.settings()["DOCKER_HOST"]
    env = {**os.environ, "EXCISE_LAB": str(laboratory.folder / "other"), "DOCKER_HOST": host}
    for verb in ("up", "status", "down"):
        said = subprocess.run(
            [LAB / "docker", verb], env=env, capture_output=True, text=True, check=True
        ).stderr
        assert verb == "down" or host in said
    assert laboratory.docker("version", "--format", "{{.Server.Version}}")
