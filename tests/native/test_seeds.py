"""Every fuzz target over its seeds, with sanitizers and without a fuzzer: `scripts/fuzz` does the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = sorted(p.stem for p in (ROOT / "native/fuzz").glob("*.c") if p.stem != "replay")
NEED_MOUNTS = {"files"}


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    subprocess.run([sys.executable, ROOT / "scripts/fuzz_seeds.py", folder], check=True)
    return folder


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_survives_its_seeds(built: Path, seeds: Path, target: str) -> None:
    if target in NEED_MOUNTS and os.geteuid() != 0:
        pytest.skip("it mounts a small file system of its own, which only root surely may")
    inputs = sorted((seeds / target).iterdir())
    assert inputs, "a target without seeds proves nothing: add them to scripts/fuzz_seeds.py"
    done = subprocess.run(
        [built / "replay" / target, *inputs], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_target_that_breaks_is_noticed(built: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [built / "replay" / "wire", tmp_path / "missing"], capture_output=True, check=False
    )
    assert done.returncode == 1
