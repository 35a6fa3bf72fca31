import subprocess

import pytest

from excise.substrates.container import remedies


@pytest.fixture
def lab(tmp_path):
    path = tmp_path / "my lab" / "docker"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_every_remedy_is_a_command_and_nothing_else(lab, tmp_path):
    nowhere = tmp_path / "nowhere"
    every = [
        remedies.INSTALL_PODMAN,
        remedies.SERVE_PODMAN,
        remedies.UPDATE,
        remedies.JOIN,
        remedies.NAME,
        remedies.install(lab),
        remedies.install(nowhere),
        remedies.start(lab, nowhere),
        remedies.start(nowhere, nowhere),
        remedies.start(lab, tmp_path),
        remedies.restart(nowhere),
        remedies.restart(tmp_path),
        remedies.runtime("runsc; true"),
    ]
    for remedy in every:
        parsed = subprocess.run(["bash", "-n", "-c", remedy], capture_output=True, check=False)
        assert parsed.returncode == 0, remedy
        assert "(in a" not in remedy
        assert "then" not in remedy.split()


def test_without_systemd_the_lab_brings_the_engine_up(lab, tmp_path):
    nowhere = tmp_path / "nowhere"
    assert "systemctl" not in remedies.start(lab, nowhere)
    assert remedies.start(lab, tmp_path) == "systemctl start docker"
    assert remedies.install(nowhere) == "apt-get install -y docker.io"
    said = subprocess.run(
        ["bash", "-c", f"set -x; {remedies.start(lab, nowhere)}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"'{lab}' up" in said.stderr


def test_the_lab_of_this_checkout_is_found():
    assert remedies.LAB.is_file()
