"""Two jails of one environment, with a warm interpreter and without: whatever is run in both must come to the same.

They need what EXCISE_REQUIRE names `jail`, and a package index.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from excise.errors import ExciseError
from excise.jail.spawner import Spawner
from excise.jail.substrate import Jail
from excise.types import Action, Deps, Handle, Limits, Observation, Spec

DEPS = Deps(
    (
        "coverage==7.6.1",
        "execnet==2.1.1",
        "hypothesis==6.150.0",
        "iniconfig==2.1.0",
        "packaging==25.0",
        "pluggy==1.6.0",
        "pygments==2.19.2",
        "pytest==8.4.2",
        "pytest-cov==5.0.0",
        "pytest-xdist==3.6.1",
        "sortedcontainers==2.4.0",
    )
)
SPEC = Spec(deps=(DEPS,), limits=Limits(cpus=None, memory_bytes=None))


def refuse(reason: str) -> None:
    """Skip, unless the environment says that it must be."""
    if "jail" in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


class Place:
    """One jail, asked from a test that is no coroutine."""

    def __init__(self, runner: asyncio.Runner, jail: Jail, box: Handle) -> None:
        self.runner, self.jail, self.box = runner, jail, box

    def sh(self, script: str, *, stdin: bytes = b"", **env: str) -> Observation:
        action = Action(("bash", "-c", script), env=env, stdin=stdin, timeout_s=50.0)
        return self.runner.run(self.jail.run(self.box, action))

    def says(self, script: str, *, stdin: bytes = b"", **env: str) -> str:
        """The output of what must succeed."""
        seen = self.sh(script, stdin=stdin, **env)
        assert seen.ok, seen.text
        return seen.text

    def write(self, path: str, data: str | bytes) -> None:
        whole = data.encode() if isinstance(data, str) else data
        self.runner.run(self.jail.write(self.box, path, whole))

    def told(self) -> dict[str, int]:
        """What became of its interpreter's runs."""
        return dict(self.runner.run(self.jail.warmth(self.box)))

    def became(
        self, script: str, *, stdin: bytes = b"", **env: str
    ) -> tuple[Observation, dict[str, int]]:
        """What a script gave, and what was counted meanwhile."""
        before = self.told()
        seen = self.sh(script, stdin=stdin, **env)
        after = self.told()
        return seen, {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}


@pytest.fixture(scope="session")
def jails(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Jail]]:
    if os.geteuid() != 0:
        refuse("needs root")
    if platform.machine() != "x86_64":
        pytest.skip("nothing is frozen on this kind of processor: all runs are real ones")
    try:
        Spawner.start(leases=tmp_path_factory.mktemp("leases")).close()
    except ExciseError as error:
        refuse(str(error))
    folder = tmp_path_factory.mktemp("warm")
    with asyncio.Runner() as runner:
        jail = Jail(folder / "store")
        yield runner, jail
        runner.run(jail.close())


Make = Callable[..., Place]


@pytest.fixture
def make(jails: tuple[asyncio.Runner, Jail]) -> Iterator[Make]:
    """A jail of its own for whoever would disturb others."""
    runner, jail = jails
    made: list[Handle] = []

    def one(spec: Spec = SPEC, warm: str | None = "auto") -> Place:
        from dataclasses import replace

        box = runner.run(jail.create(replace(spec, warm=warm)))
        made.append(box)
        return Place(runner, jail, box)

    yield one
    for box in made:
        runner.run(jail.destroy(box))


@pytest.fixture(scope="session")
def both(jails: tuple[asyncio.Runner, Jail]) -> tuple[Place, Place]:
    """The cold one and the warm one."""
    from dataclasses import replace

    runner, jail = jails
    places = []
    for warm in (None, "auto"):
        box = runner.run(jail.create(replace(SPEC, warm=warm)))
        places.append(Place(runner, jail, box))
    return places[0], places[1]


@pytest.fixture(scope="session")
def archives() -> Path:
    """Where source archives are kept between runs."""
    from excise.tasks import cache

    return cache.root()
