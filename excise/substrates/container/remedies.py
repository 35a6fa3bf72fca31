"""What to type so that an engine can be used: each of them is a shell command, for people and for programs."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

LAB = Path(__file__).resolve().parents[3] / "lab" / "docker"
"""In a checkout: brings an engine up on a bare Debian machine, and down without a trace."""

SYSTEMD = Path("/run/systemd/system")

INSTALL_PODMAN = "apt-get install -y podman runc catatonit"
SERVE_PODMAN = "podman --runtime runc system service --time 0 &"
UPDATE = "apt-get install -y --only-upgrade docker.io"
JOIN = 'usermod -aG docker "$USER" && exec newgrp docker'
NAME = "export DOCKER_HOST=unix:///var/run/docker.sock"


def install(lab: Path = LAB) -> str:
    """Where Docker is missing."""
    return _of_lab(lab) or "apt-get install -y docker.io"


def start(lab: Path = LAB, systemd: Path = SYSTEMD) -> str:
    """Where Docker is installed and does not run; a container or a bare machine has no systemd to ask."""
    if systemd.is_dir():
        return "systemctl start docker"
    return _of_lab(lab) or "dockerd &"


def restart(systemd: Path = SYSTEMD) -> str:
    """Where an engine runs and does not answer."""
    return "systemctl restart docker" if systemd.is_dir() else "pkill dockerd; dockerd &"


def runtime(name: str) -> str:
    """Where the engine does not know a runtime."""
    path = shutil.which(name) or f"/usr/bin/{name}"
    return f"dockerd --add-runtime {shlex.quote(f'{name}={path}')}"


def _of_lab(lab: Path) -> str | None:
    if not lab.is_file():
        return None
    name = shlex.quote(str(lab))
    return f'{name} up && eval "$({name} env)"'
