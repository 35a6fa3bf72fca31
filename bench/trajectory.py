"""Whole trajectories on the attrs task: in jails from a warm pool, against the same commands as bare processes.

Tax and work are told apart as in a study. The 64 at once leave the test runs out, which are most of a trajectory's
work, so that what a sandbox costs is seen the more; their baseline is the same commands with the same number at once.
Needs root.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.convention import Row, Sample
from bench.pools.world import World, world
from excise.jail.substrate import Jail
from excise.layers.host import build_rootfs
from excise.pools.counts import Got
from excise.pools.pool import Pool
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.session import Session
from excise.substrates.base import Substrate
from excise.substrates.local import Local
from excise.tax.marks import Marks
from excise.tax.split import Baseline, split
from excise.types import Action, Limits, Repo, Spec
from excise.workloads.base import Site
from excise.workloads.trajectory import trajectory

LONG, ROUNDS = 150, 3
SHORT, AT_ONCE, TURNS = 50, 64, 2


def rows() -> Iterator[Row]:
    gc.freeze()
    with world(0) as made:
        yield from asyncio.run(_alone(made))
        yield asyncio.run(_at_once(made))


async def _alone(made: World) -> list[Row]:
    """One trajectory of 150 actions after the other: bare, in a jail, and in one with a warm interpreter, in turns."""
    taken: dict[str, list[Marks]] = {"bare": [], "jail": [], "warm": []}
    actions = _actions(made, LONG, tests=True)
    async with AsyncExitStack() as stack:
        pool, jails, processes = await _arms(made, stack, 4)
        warm = Arm(pool, replace(jails.spec, warm=made.prepared.python))
        arms = {"bare": processes, "jail": jails, "warm": warm}
        for arm in (jails, warm):
            pool.pin(arm.spec, 1)
        for arm in arms.values():
            await _trajectory(arm, actions[:20])
        for number in range(ROUNDS):
            for name, arm in [*arms.items()][:: 1 if number % 2 else -1]:
                taken[name].append(await _trajectory(arm, actions))
        assert pool.counts.acquired[Got.EXACT] >= 2 * ROUNDS, pool.counts
    return [_tax(taken["bare"], taken["jail"]), _episode(taken["bare"], taken["warm"])]


def _tax(bare: Sequence[Marks], jail: Sequence[Marks]) -> Row:
    baseline = Baseline({number: [marks] for number, marks in enumerate(bare)})
    taxes = [split(marks, baseline.work(number)) for number, marks in enumerate(jail)]
    whole = Sample(tuple(tax.total_ns / 1000 for tax in taxes))
    name = f"{LONG} actions in a jail from a pool: tax over work"
    value = median(tax.ratio for tax in taxes)
    return _row(name, value, "the same as bare processes", 0.03, 0.01, whole)


def _episode(bare: Sequence[Marks], warm: Sequence[Marks]) -> Row:
    """Bytecode is there for both: the task's environment is compiled when it is made."""
    pairs = [
        (mine.gone_ns - mine.due_ns, theirs.gone_ns - theirs.due_ns)
        for mine, theirs in zip(warm, bare, strict=True)
    ]
    whole = Sample(tuple(mine / 1000 for mine, _ in pairs))
    name = f"{LONG} actions in a jail from a pool, with a warm interpreter: the episode's time"
    value = median(mine / theirs for mine, theirs in pairs)
    return _row(name, value, "the same as bare processes", 0.60, 0.45, whole)


async def _at_once(made: World) -> Row:
    """All begin together, and the last that ends counts."""
    actions = _actions(made, SHORT, tests=False)
    took: dict[str, list[float]] = {"bare": [], "jails": []}
    async with AsyncExitStack() as stack:
        pool, jails, processes = await _arms(made, stack, AT_ONCE)
        pool.pin(jails.spec, AT_ONCE)
        for number in range(TURNS):
            for name, arm in (("bare", processes), ("jails", jails))[:: 1 if number % 2 else -1]:
                while pool.status()["idle"] < AT_ONCE:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                start = time.perf_counter_ns()
                await asyncio.gather(*(_trajectory(arm, actions) for _ in range(AT_ONCE)))
                took[name].append((time.perf_counter_ns() - start) / 1000)
        assert pool.counts.acquired[Got.EXACT] == TURNS * AT_ONCE, pool.counts
    mine, theirs = Sample(tuple(took["jails"])), Sample(tuple(took["bare"]))
    name = f"{AT_ONCE} trajectories of {SHORT} actions at once"
    return _row(
        name, mine.p50_us / theirs.p50_us, "the same bare, as many at once", 1.05, 1.0, mine
    )


@dataclass(frozen=True, slots=True)
class Arm:
    """One substrate and what is to be created on it."""

    substrate: Substrate
    spec: Spec


async def _arms(made: World, stack: AsyncExitStack, sandboxes: int) -> tuple[Pool, Arm, Arm]:
    """A pool of jails on an image of this host's own programs; it as an arm; and bare processes."""
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="excise-bench-")))
    built = build_rootfs(paths=(made.prepared.venv,), out=folder / "image")
    jail = Jail(folder / "store")
    await jail.import_image(built.reference, built.archive)
    pool = await stack.enter_async_context(pooled(jail, Rules(budget=Budget(sandboxes))))
    bare = Arm(Local(folder / "local"), _spec(made, "host"))
    return pool, Arm(pool, _spec(made, built.reference)), bare


async def _trajectory(arm: Arm, actions: Sequence[Action]) -> Marks:
    async with Session(arm.substrate, arm.spec) as session:
        for action in actions:
            await session.act(action)
    return session.marks


def _actions(made: World, length: int, *, tests: bool) -> list[Action]:
    """The trajectory's actions; without its test runs, the last ones of a longer one."""
    prepared = made.prepared
    site = Site(python=prepared.python, repo=Repo("", "", "repo"))
    steps = trajectory(prepared, length if tests else 2 * length).steps(site)
    kept = [step for step in steps if tests or step.kind != "test"]
    return [step.action({}) for step in kept[-length:]]


def _spec(made: World, image: str) -> Spec:
    """The same programs, packages and repository for both."""
    repo = Repo(str(made.prepared.checkout), made.prepared.commit)
    return Spec(image, repo, limits=Limits(cpus=None, memory_bytes=None))


def _row(name: str, value: float, baseline: str, reach: float, aim: float, taken: Sample) -> Row:
    return Row(name, value, baseline, reach, aim, len(taken.times_us), taken.p50_us, taken.p95_us)
