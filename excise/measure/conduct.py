"""Conduct a study from the command line's words to the last record, or go on with one that was stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from excise.clock import SystemClock
from excise.errors import InputError
from excise.measure import fitting, host, plan
from excise.measure.assemble import Assembled, assembled
from excise.measure.decide import Asked, Planned, begun_limits, decide, refuse_another
from excise.measure.load import arrivals
from excise.measure.progress import Progress
from excise.measure.record import StudyRecord, TrialRecord
from excise.measure.store import (
    HEAD,
    Ledger,
    Study,
    check_free,
    read_head,
    read_study,
    write_head,
)
from excise.measure.study import Conditions, run_loads, run_slots, sweep, tidy
from excise.substrates import registry
from excise.tasks import cache


async def conduct(
    asked: Asked,
    directory: Path,
    progress: Progress,
    *,
    stop_after: int | None = None,
    minutes: float | None = None,
    forgiving: bool = False,
) -> Study:
    """Run every trial that is not in `directory` yet, and read the study back.

    `stop_after` failures of one substrate in a row raise `Stopped`; without it the study goes on whatever fails.
    `forgiving` leaves out what cannot be made. Of a study that is begun, `minutes` cut the blocks to what fits; one that is gone on with has its blocks.
    """
    minutes = fitting.checked(minutes)
    _cancel_on_sigterm()
    if (directory / HEAD).exists():
        ledger, study = Ledger.resume(directory, whole_loads(read_head(directory)))
        with ledger:
            planned = await _as_begun(asked, study.record)
            left = _left(study)
            if not left:
                progress.say(f"{directory} is complete; choose another --out for a new study")
                return study
            progress.say(f"going on with {directory}: {left} trials to run")
            async with assembled(planned, _name(directory), progress, resumed=study.record) as made:
                await _run(made, ledger, study, progress, stop_after)
    else:
        check_free(directory)
        planned = await decide(asked)
        for name, reason in planned.skipped.items():
            progress.say(f"without {name}: {reason}")
        async with assembled(planned, _name(directory), progress, forgiving=forgiving) as made:
            with Ledger.create(directory, made.record) as ledger:
                fitted = await _fitted(made, ledger, progress, minutes)
                study = Study(fitted.record, read_study(directory).trials)
                await _run(fitted, ledger, study, progress, stop_after)
    return read_study(directory)


async def _fitted(
    made: Assembled, ledger: Ledger, progress: Progress, minutes: float | None
) -> Assembled:
    """Run the first block, and fix how many there will be by how long that took; where time is no matter, do nothing."""
    slots = _slots(made.record)
    if minutes is None or not slots:
        return made
    record, timed, clock = made.record, fitting.Timed(progress), SystemClock()
    began_ns = clock.now_ns()
    conditions = _conditions(record, None)
    await run_slots(fitting.first_block(slots), made.settings, ledger, conditions, progress=timed)
    left_s = minutes * 60 - (clock.now_ns() - began_ns) / 1e9
    blocks = fitting.blocks_that_fit(
        record.cells, timed.took_s, left_s, blocks=record.blocks, warm_ups=record.warm_ups - 1
    )
    record = structs.replace(record, blocks=blocks, minutes=minutes)
    write_head(ledger.directory, record)
    progress.say(f"{blocks} blocks fit into {minutes:g} minutes")
    return replace(made, record=record)


def _conditions(record: StudyRecord, stop_after: int | None) -> Conditions:
    return Conditions(
        study=record.id,
        session=record.session,
        quiet_s=plan.preset(record.preset).quiet_s,
        stop_after=stop_after,
    )


async def _run(
    made: Assembled, ledger: Ledger, study: Study, progress: Progress, stop_after: int | None
) -> None:
    record = made.record
    conditions = _conditions(record, stop_after)
    swept = await sweep(made.substrates)
    if swept:
        progress.say(f"removed {swept} sandboxes that killed runs left behind")
    try:
        await run_slots(
            _slots(record), made.settings, ledger, conditions, done=study.done, progress=progress
        )
        await run_loads(
            [c for c in record.cells if c.load],
            made.settings,
            ledger,
            conditions,
            seed=record.seed,
            done=study.done,
            progress=progress,
        )
    finally:
        await asyncio.shield(tidy(made.substrates, progress))


def _slots(record: StudyRecord) -> tuple[plan.Slot, ...]:
    return plan.slots(
        record.cells,
        blocks=record.blocks,
        warm_ups=record.warm_ups,
        seed=record.seed,
        session=record.session,
    )


def whole_loads(record: StudyRecord) -> Callable[[Sequence[TrialRecord]], int]:
    """Keeps all trials but the last ones of a load of which a crash left a part: half a burst is none."""
    wanted = {c.name: len(arrivals(c.load, record.seed)) for c in record.cells if c.load}

    def keep(trials: Sequence[TrialRecord]) -> int:
        last = trials[-1].cell if trials else ""
        count = sum(t.cell == last and t.session == record.session for t in trials)
        return len(trials) - (count if count < wanted.get(last, 0) else 0)

    return keep


def planned_trials(record: StudyRecord) -> int:
    """How many trials the study has when it is complete."""
    loads = sum(len(arrivals(c.load, record.seed)) for c in record.cells if c.load)
    if record.merged:
        return loads + sum((c.blocks or 0) + (c.warm_ups or 0) for c in record.cells if not c.load)
    return loads + len(_slots(record))


def _left(study: Study) -> int:
    return planned_trials(study.record) - len(study.done)


async def _as_begun(asked: Asked, record: StudyRecord) -> Planned:
    """The plan of a study that was begun, if this is still the same host and the same question."""
    if record.merged:
        raise InputError("several studies were merged into this one: go on with those instead")
    refuse_another(asked, record)
    apart = host.unlike(record.host, host.facts(cache.root()))
    if apart:
        raise InputError(
            f"this study was begun on another host ({'; '.join(apart)}): choose another --out"
        )
    for cell in record.cells:
        usable = await registry.availability(cell.substrate, **cell.options)
        if not usable.usable:
            raise InputError(f"{cell.label} took part and is not usable now: {usable}")
    how = plan.preset(record.preset)
    return Planned(
        how, record.cells, record.seed, record.tasks, record.skipped, begun_limits(record)
    )


def _cancel_on_sigterm() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _name(directory: Path) -> str:
    return directory.resolve().name
