"""The same attempts and bombs against jails that a user without root makes; each must be held there as well."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import excise

from .conftest import refuse
from .test_bombs import BOMBS
from .test_escape import ATTEMPTS

SOMEBODY = 1000
WHO = ("setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups")
DRIVER = Path(__file__).with_name("rootless_escape.py")
PACKAGES = (excise, msgspec)
SAME = "import sys; sys.exit(sys.version_info[:2] != ({}, {}))"

Found = dict[tuple[str, str], object]


def _python() -> str:
    """An interpreter like ours that somebody else can run."""
    same = SAME.format(*sys.version_info[:2])
    for each in (sys.executable, "/usr/bin/python3"):
        if (
            subprocess.run([*WHO, each, "-c", same], capture_output=True, check=False).returncode
            == 0
        ):
            return each
    refuse("needs a Python of this version that everybody can run, at /usr/bin/python3")
    raise AssertionError


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder of the user's own with the package in it: he may not be able to read this checkout."""
    if os.geteuid() != 0:
        refuse("needs root, to become somebody else")
    folder = Path("/var/tmp") / f"excise-rootless-escape-{os.getpid()}"
    folder.mkdir()
    for package in PACKAGES:
        assert package.__file__
        source = Path(package.__file__).parent
        shutil.copytree(source, folder / "site" / source.name)
    shutil.copy2(DRIVER, folder / "driver.py")
    os.chown(folder, SOMEBODY, SOMEBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def found(place: Path, attempts: Path, targets: dict[str, str]) -> Found:
    """What came of each, by kind and name."""
    shutil.copy2(attempts, place / "attempts")
    asked = {"attempts": {name: targets.get(name, "") for name in ATTEMPTS}, "bombs": BOMBS}
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "PYTHONPATH": str(place / "site"), "HOME": str(place)}
    done = subprocess.run(
        [*WHO, _python(), place / "driver.py", place],
        input=json.dumps(asked), capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    if "user name space" in done.stderr:
        refuse(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return {(kind, name): what for kind, name, what in map(json.loads, done.stdout.splitlines())}


pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", sorted(ATTEMPTS))
def test_an_attempt_is_held_without_root_too(found: Found, name: str) -> None:
    assert str(found["attempt", name]).startswith("held E")


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_harms_nobody_without_root_either(found: Found, name: str) -> None:
    assert found["bomb", name] in {"held", "the jail is gone"}
    assert found["neighbour", name] is True


def test_nothing_is_left_of_them(found: Found) -> None:
    assert found["end", "leases"] == []
