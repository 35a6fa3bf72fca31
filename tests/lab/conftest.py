"""A laboratory of a test's own: below a short path, because the paths of sockets have an end."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "lab"
MAIN = "from excise.cli import main; raise SystemExit(main())"
ELSEWHERE = {"DOCKER_HOST", "CONTAINER_HOST", "EXCISE_VM"}


@dataclass(frozen=True)
class Laboratory:
    folder: Path

    def run(self, script: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        return subprocess.run(
            [LAB / script, *words], env={**env, "EXCISE_LAB": str(self.folder)},
            capture_output=True, text=True, check=check,
        )  # fmt: skip

    def settings(self) -> dict[str, str]:
        lines = self.run("env").stdout.splitlines()
        return dict(shlex.split(line)[1].split("=", 1) for line in lines)

    def docker(self, *words: str) -> str:
        host = self.settings()["DOCKER_HOST"]
        return subprocess.check_output(["/usr/bin/docker", "-H", host, *words], text=True).strip()

    def kill(self, *programs: str) -> None:
        """As the kernel would, had it run out of memory."""
        for pid, words in self.processes():
            if Path(words[0]).name in programs:
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> Iterator[tuple[int, list[str]]]:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if f"{self.folder}/" in words:
                yield int(process.name), words.split("\0")

    def traces(self) -> list[str]:
        """What carries the folder in its name: files, mounts, processes."""
        found = [f"file {path}" for path in self.folder.glob("*")]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        found += [f"mount {line}" for line in mounts if f"{self.folder}/" in line]
        return found + [f"process {words}" for _, words in self.processes()]

    def excise(self, *words: object, **env: str) -> subprocess.Popen[str]:
        """The command line on this laboratory's engines, or on those that `env` names."""
        own = env or self.settings()
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            env={**os.environ, **own}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    if os.geteuid() != 0:
        pytest.skip("a laboratory is root's to bring up")
    folder = Path(tempfile.mkdtemp(prefix="xl-", dir="/tmp"))
    made = Laboratory(folder)
    yield made
    made.run("down")
    shutil.rmtree(folder, ignore_errors=True)
