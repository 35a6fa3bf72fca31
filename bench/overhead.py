"""What Excise itself adds: to an action, to a trial, and to the start of a program that imports it.

The baseline of the first rows is the cheapest thing any substrate must do, starting `/bin/true` and waiting
for it; of the others, a bare Python that starts and ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

from bench.convention import Row, Sample, interleaved
from excise.clock import SystemClock
from excise.measure.judge import judge
from excise.measure.plan import Slot
from excise.measure.record import Cell
from excise.measure.trial import Setting, perform
from excise.session import PROBE, Session
from excise.substrates.fake import Fake
from excise.types import Spec
from excise.workloads.base import Listed, Step

ACTIONS = 200
"""Per measured call, so that entering the event loop is spread thin."""


def rows() -> Iterator[Row]:
    with asyncio.Runner() as runner:
        yield from _harness(runner)
    yield from _start_up()


def _harness(runner: asyncio.Runner) -> Iterator[Row]:
    null = Fake()
    box = runner.run(null.create(Spec()))
    session = runner.run(Session(null).__aenter__())

    async def straight() -> None:
        for _ in range(ACTIONS):
            await null.run(box, PROBE)

    async def through_session() -> None:
        for _ in range(ACTIONS):
            await session.act(PROBE)

    settings = {n: _null_setting(null, n) for n in (1, 1 + ACTIONS)}

    def trial(actions: int) -> None:
        runner.run(_trial(settings[actions]))

    taken = interleaved(
        {
            "true": _spawn_true,
            "straight": lambda: runner.run(straight()),
            "session": lambda: runner.run(through_session()),
            "trial": lambda: trial(1),
            "long trial": lambda: trial(1 + ACTIONS),
        },
        rounds=150,
    )
    runner.run(session.end())
    baseline = "start /bin/true and wait"
    per_action = _per_action(taken["session"], taken["straight"])
    yield _row("Session, added per action", per_action, taken["true"], baseline, 0.02, 0.005)
    added = _per_action(taken["long trial"], taken["trial"])
    yield _row("harness, added per action of a trial", added, taken["true"], baseline, 0.2, 0.05)
    yield _row(
        "whole null trial with its record", taken["trial"], taken["true"], baseline, 1.5, 0.7
    )


def _start_up() -> Iterator[Row]:
    taken = interleaved(
        {
            "python": lambda: _python("pass"),
            "import": lambda: _python("import excise"),
            "help": lambda: _python("import excise.cli; excise.cli.main(['--help'])"),
        },
        rounds=15,
    )
    baseline = "python -c pass"
    yield _row("import excise, whole process", taken["import"], taken["python"], baseline, 1.5, 1.1)
    yield _row("excise --help, whole process", taken["help"], taken["python"], baseline, 20, 10)


async def _trial(setting: Setting) -> None:
    seen = await perform(setting, clock=SystemClock(), nonce="bench")
    judge(seen, setting, Slot(1, 0, 0, setting.cell, 0), study="bench")


def _null_setting(null: Fake, actions: int) -> Setting:
    steps = (Step("command", "true"),) * actions
    workload = Listed(f"null:{actions}", lambda _: steps)
    return Setting(Cell(label="null", substrate="fake", workload=workload.name), null, workload)


def _per_action(longer: Sample, shorter: Sample) -> Sample:
    pairs = zip(longer.times_us, shorter.times_us, strict=True)
    return Sample(tuple((a - b) / ACTIONS for a, b in pairs))


def _row(name: str, taken: Sample, against: Sample, baseline: str, reach: float, aim: float) -> Row:
    return Row(
        name=name,
        value=taken.p50_us / against.p50_us,
        baseline=baseline,
        reach=reach,
        aim=aim,
        n=len(taken.times_us),
        p50_us=taken.p50_us,
        p95_us=taken.p95_us,
    )


def _spawn_true() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
