"""The command line as users have it: a process of its own, with caches and state of its own."""

import os
import subprocess
import sys

import pytest

MAIN = "from excise.cli import main; raise SystemExit(main())"


@pytest.fixture
def excise(tmp_path):
    """Run the command line with caches and state of its own."""
    env = {**os.environ, "EXCISE_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    started: list[subprocess.Popen] = []

    def start(*words, **environment):
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            env=env | environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    def run(*words, **environment):
        process = start(*words, **environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    run.start = start
    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
