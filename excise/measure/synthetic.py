"""A study in written-down time: the real plan, workloads and harness over fakes with drawn latencies.

It takes no time, needs no task to be built and is the same for the same seed, so that whatever reads
studies can be tried on one. It says nothing about any real substrate, and its head says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise import __version__
from excise.clock import FakeClock
from excise.errors import Phase, SubstrateError
from excise.measure import plan
from excise.measure.decide import unprepared
from excise.measure.record import Cell, Noted, Overhead, StudyRecord
from excise.measure.store import Ledger, Study, read_study
from excise.measure.study import Conditions, run_loads, run_slots
from excise.measure.trial import Setting
from excise.substrates.fake import Fake, Latencies, script_of
from excise.tasks import load
from excise.types import Action, Handle, Observation, Spec
from excise.workloads.base import Site, Workload
from excise.workloads.catalogue import task_of, workload

WORK_S = {"inspect": 0.003, "command": 0.015, "edit": 0.004, "test": 0.24, "set_up": 0.11}
"""What an action of each kind takes as a bare process."""

HOST: dict[str, str | int | float | None] = {
    "cpu": "written down",
    "cores": 2,
    "memory_bytes": 8 * 1024**3,
    "kernel": "none",
    "virtualisation": "none",
    "clock_source": "fake",
    "cgroup": "v2",
    "storage": "none",
    "python": "3.11.0",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """The medians from which one substrate's latencies are drawn, and how far they spread."""

    latencies: Latencies
    slowdown: float = 1.0
    spread: float = 0.1
    """Sigma of the lognormal factor on every latency."""
    failing: float = 0.0
    """Share of creations that fail."""
    times_inside: bool = True


SUBSTRATES: Mapping[str, Drawn] = {
    plan.BARE: Drawn(Latencies(create_s=0.0006, run_s=0.0009, destroy_s=0.0004)),
    "container": Drawn(
        Latencies(create_s=0.16, ready_s=0.004, run_s=0.023, destroy_s=0.032), slowdown=1.04
    ),
    "vm": Drawn(
        Latencies(create_s=2.1, ready_s=5.5, run_s=0.012, destroy_s=0.4),
        slowdown=1.3,
        spread=0.25,
        failing=0.02,
    ),
}


def synthetic(
    directory: Path,
    *,
    preset: str = "smoke",
    seed: int = 1,
    substrates: Mapping[str, Drawn] = SUBSTRATES,
    workloads: tuple[str, ...] = (),
    loads: tuple[str, ...] = (),
) -> Study:
    """Run a written-down study into `directory` and read it back."""
    chosen = [plan.Chosen(label, "fake") for label in substrates]
    how = plan.preset(preset)
    cells = (*plan.cells(chosen, how, workloads=workloads), *plan.load_cells(chosen, loads))
    record = _head(directory, how, cells, seed, substrates)
    clock = FakeClock(10**12)
    settings = {c.name: _setting(c, substrates, clock, seed) for c in cells}
    conditions = Conditions(study=record.id, clock=clock)
    slots = plan.slots(cells, blocks=how.blocks, warm_ups=how.warm_ups, seed=seed)
    with Ledger.create(directory, record) as ledger:
        asyncio.run(run_slots(slots, settings, ledger, conditions))
        of_loads = [c for c in cells if c.load]
        asyncio.run(run_loads(of_loads, settings, ledger, conditions, seed=seed))
    return read_study(directory)


def _head(
    directory: Path,
    how: plan.Preset,
    cells: tuple[Cell, ...],
    seed: int,
    substrates: Mapping[str, Drawn],
) -> StudyRecord:
    warning = Noted(
        kind="synthetic",
        text="every latency in this study was written down, not measured",
        advice="use it to try the report, never as a result",
    )
    return StudyRecord(
        id=f"synthetic-{directory.name}-{seed}",
        started="2026-01-01T00:00:00+00:00",
        preset=how.name,
        seed=seed,
        blocks=how.blocks,
        warm_ups=how.warm_ups,
        version=__version__,
        cells=cells,
        host=HOST,
        substrates={label: {"isolation": "none", "synthetic": "yes"} for label in substrates},
        overhead=Overhead(trial_us=(90.0, 140.0), action_us=(4.0, 9.0), clock_ns=60.0, trials=200),
        placement="written down",
        doubts=(warning,),
    )


def _setting(cell: Cell, substrates: Mapping[str, Drawn], clock: FakeClock, seed: int) -> Setting:
    task = task_of(cell.workload)
    prepared = {} if task is None else {task: unprepared(load.task(task))}
    listed = workload(cell.workload, prepared)
    drawn = substrates[plan.BARE if cell.label == plan.TWIN else cell.label]
    draw = random.Random(f"{seed}/{cell.name}")  # noqa: S311 - latencies, not a secret
    substrate = _Drawing(cell.label, drawn, listed, clock, draw)
    return Setting(cell, substrate, listed, tree=None if task is None else "0" * 40)


class _Drawing(Fake):
    """A fake whose latencies are drawn anew for every sandbox and every action."""

    def __init__(
        self, label: str, drawn: Drawn, listed: Workload, clock: FakeClock, draw: random.Random
    ) -> None:
        super().__init__(drawn.latencies, clock=clock, answers=self._observe, name=label)
        self.times_inside = drawn.times_inside
        self._drawn, self._random, self._written = drawn, draw, drawn.latencies
        site = Site()
        steps = (*listed.set_up(site), *listed.steps(site))
        self._answers_in_order = [(s.kind, s.exit_code or 0) for s in steps]
        self._next = 0

    async def create(self, spec: Spec) -> Handle:
        self._next = 0
        factors = (getattr(self._written, n) * self._factor() for n in Latencies.__slots__)
        self.latencies = Latencies(*factors)
        box = await super().create(spec)
        if self._random.random() < self._drawn.failing:
            await super().destroy(box)
            raise SubstrateError(
                "the machine did not start", substrate=self.name, phase=Phase.CREATE
            )
        return box

    def _observe(self, action: Action) -> Observation:
        if script_of(action) == "true":
            return Observation(0, inside_ns=round(0.0004 * self._factor() * 1e9))
        kind, code = self._answers_in_order[self._next % len(self._answers_in_order)]
        self._next += 1
        seconds = WORK_S[kind] * self._drawn.slowdown * self._factor()
        return Observation(code, inside_ns=round(seconds * 1e9))

    def _factor(self) -> float:
        return self._random.lognormvariate(0.0, self._drawn.spread)
