"""`excise sweep` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from excise.jail import lease

EXCISE = Path(sys.executable).with_name("excise")


def sweep(*words: str) -> str:
    return subprocess.run(
        [EXCISE, "sweep", *words], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def left(able: None) -> Path:
    """The lease of a process that cannot be."""
    folder = lease.root() / "4194304-1-00000000"
    (folder / "scratch").mkdir(parents=True)
    (folder / "lock").touch()
    return folder


def test_a_sweep_says_what_it_would_do_then_does_it_then_has_nothing_to_do(left: Path) -> None:
    looked = json.loads(sweep("--dry-run", "--json"))
    assert looked["dry_run"] is True
    assert looked["leases"] >= 1
    assert left.exists()
    assert sweep().startswith("removed ")
    assert not left.exists()
    assert sweep("--json").startswith('{"dry_run": false, "leases": 0')
