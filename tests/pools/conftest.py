"""Pools of real jails: what they need must be there where EXCISE_REQUIRE names `jail`.

All tests of this folder share one store, in which an environment of one package and a repository of two commits
are laid; they differ in what they do with it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from excise.errors import ExciseError
from excise.jail.spawner import Spawner
from excise.jail.substrate import Jail
from excise.types import Deps, Limits, Repo, Spec

T = TypeVar("T")


def refuse(reason: str) -> None:
    """Skip, unless the environment says that it must be."""
    if "jail" in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def able(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Jails can be made here."""
    if os.geteuid() != 0:
        refuse("needs root")
    try:
        Spawner.start(leases=tmp_path_factory.mktemp("leases")).close()
    except ExciseError as error:
        refuse(str(error))


@dataclass(frozen=True)
class World:
    """A store, a package and a repository with commits `first` and `second`."""

    store: Path
    index: Path
    source: Path
    first: str
    second: str

    @property
    def deps(self) -> tuple[Deps, ...]:
        return (Deps(("alpha==1.0",)),)

    def spec(self, commit: str | None = None, **more: Any) -> Spec:
        """With the package and one of the commits."""
        more.setdefault("limits", Limits(disk_bytes=64 << 20))
        return Spec(deps=self.deps, repo=Repo(str(self.source), commit or self.first), **more)


@pytest.fixture(scope="session")
def world(
    able: None, write_wheel: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory
) -> World:
    index, source = (tmp_path_factory.mktemp(name) for name in ("index", "source"))
    write_wheel(index)
    commits = []
    for number in (1, 2):
        (source / "file").write_text(f"{number}\n")
        commits.append(_commit(source, str(number)))
    return World(tmp_path_factory.mktemp("store"), index, source, *commits)


@pytest.fixture(autouse=True)
def index_of_our_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each test alone: a variable that outlived it would cut others off the real index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(world.index))


def _commit(source: Path, message: str) -> str:
    def git(*words: str) -> str:
        named = ("-c", "user.name=x", "-c", "user.email=x@y", "-C", str(source))
        done = subprocess.run(("git", *named, *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", message)
    return git("rev-parse", "HEAD")


Trial = Callable[[Jail], Coroutine[Any, Any, T]]


@pytest.fixture
def inside(world: World, tmp_path: Path) -> Callable[[Trial[T]], T]:
    """Runs a trial with a jail of its own on the shared store, and closes it."""

    def run(trial: Trial[T], store: Path | None = None) -> T:
        async def whole() -> T:
            jail = Jail(store or world.store, leases=tmp_path / "leases")
            try:
                return await trial(jail)
            finally:
                await jail.close()

        return asyncio.run(whole())

    return run
