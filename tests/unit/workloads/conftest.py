"""One task of ours, prepared on paper: the workloads under test are pure and touch no disk."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

import excise.tasks
from excise.tasks.descriptor import Prepared, Task
from excise.types import Repo
from excise.workloads.base import Site

LIBRARY = Path(excise.tasks.__file__).parent / "library"


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    descriptor = tomllib.loads((LIBRARY / "attrs-1417.toml").read_text())
    return Prepared(
        task=msgspec.convert(descriptor, Task),
        commit="c" * 40,
        tree="t" * 40,
        git_dir=Path("/nowhere/bare"),
        checkout=Path("/nowhere/checkout"),
        venv=Path("/nowhere/venv"),
        test_patch=b"--- a/tests/x.py\n+++ b/tests/x.py\n",
        gold_patch=b"--- a/src/x.py\n+++ b/src/x.py\n",
    )


@pytest.fixture(scope="session")
def site() -> Site:
    return Site(python="/venv/bin/python", git_url="git://host/x", repo=Repo("/src", "c" * 40))
