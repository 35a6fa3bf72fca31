"""The workloads as they run: known exit codes, and the same observations wherever they run.

Needs the package index once, to rebuild the task.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from excise.clock import SystemClock
from excise.measure.record import Cell
from excise.measure.stock import Supplies, stock
from excise.measure.trial import Setting, perform
from excise.substrates import local
from excise.tasks.descriptor import Prepared
from excise.tasks.forge import prepare
from excise.tasks.load import task
from excise.tasks.serve import GitServer
from excise.types import Limits
from excise.workloads.base import Golden, Step
from excise.workloads.catalogue import workload
from excise.workloads.goldens import chain, golden_of

ID = "attrs-1417"
HOST = "127.0.0.1"
Run = list[tuple[Step, Golden, bool]]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(task(ID))


class Runs:
    """Every workload run twice at once, in unlike places, and once per module."""

    def __init__(self, prepared: Prepared, state: Path) -> None:
        self.prepared, self.state = prepared, state
        self._known: dict[str, tuple[Run, Run]] = {}

    def of(self, name: str) -> tuple[Run, Run]:
        if name not in self._known:
            self._known[name] = asyncio.run(self._both(name))
        return self._known[name]

    async def _both(self, name: str) -> tuple[Run, Run]:
        places = (self.state / "one", self.state / "a" / "quite" / "different" / "place")
        async with GitServer({ID: self.prepared.git_dir}, host=HOST) as git:
            supplies = Supplies({ID: self.prepared}, {HOST: git}, self.state, Limits())
            one, other = await asyncio.gather(*(self._run(name, p, supplies) for p in places))
        return one, other

    async def _run(self, name: str, state: Path, supplies: Supplies) -> Run:
        """Each step with what came of it, and whether it was cut off."""
        listed = workload(name, {ID: self.prepared})
        substrate = local.open_substrate(state=str(state))
        spec, site = await stock(substrate, listed, supplies)
        cell = Cell(label="bare", substrate="local", workload=name)
        setting = Setting(cell, substrate, listed, spec, site)
        seen = await perform(setting, clock=SystemClock(), nonce="n")
        assert seen.error is None
        return [(step, golden_of(o.exit_code, o.stdout), o.timed_out) for step, _, o in seen.acted]


@pytest.fixture(scope="module")
def runs(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(prepared, tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(
    "name",
    [
        "T0",
        f"T1:{ID}",
        f"T2:{ID}",
        f"K10:{ID}",
        f"K13:{ID}+clone",
        f"K20:{ID}+arc",
        f"K50:{ID}+session+faulty=1+chatty",
        f"K50:{ID}+faulty=1+chatty+arc",
    ],
)
def test_every_step_ends_as_its_author_says_and_twice_the_same(name: str, runs: Runs) -> None:
    one, other = runs.of(name)
    for step, golden, cut_off in one:
        assert step.exit_code in (None, golden.exit_code), step.script
        assert cut_off == step.times_out, step.script
    differing = [a[0].script for a, b in zip(one, other, strict=True) if a[1] != b[1]]
    assert not differing


def test_published_digests_are_what_runs_here(prepared: Prepared, runs: Runs) -> None:
    minor = ".".join(map(str, sys.version_info[:2]))
    published = {k: v for k, v in prepared.task.golden.items() if v.python == minor}
    if not published:
        pytest.skip(f"no digest was published for Python {minor}")
    for key in {"T1", "T2", "K10"} & set(published):
        seen, _ = runs.of(f"{key}:{ID}")
        assert chain(golden for _, golden, _ in seen) == published[key].sha256, key
