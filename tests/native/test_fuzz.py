"""A few seconds of real fuzzing for every target: `make fuzz` gives each five minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .test_seeds import NEED_MOUNTS, ROOT, TARGETS

SECONDS = 3


@pytest.fixture(scope="session")
def fuzzers() -> Path:
    """The targets under libFuzzer, built once; only what has changed is compiled."""
    if shutil.which("clang") is None:
        if "fuzzer" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail("no clang", pytrace=False)
        pytest.skip("no clang: apt install clang")
    done = subprocess.run(
        [ROOT / "native" / "build", "--fuzz"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "fuzzing"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_survives_what_the_fuzzer_makes_up(
    fuzzers: Path, tmp_path: Path, target: str
) -> None:
    assert (fuzzers / target).is_file()
    if target in NEED_MOUNTS and os.geteuid() != 0:
        pytest.skip("it mounts a small file system of its own, which only root surely may")
    done = subprocess.run(
        [ROOT / "scripts/fuzz", str(SECONDS), target],
        env={**os.environ, "EXCISE_FUZZ_CORPUS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout
