"""Conduct a study from the command line's words to the last record, or go on with one that was stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from excise.errors import InputError
from excise.measure import host, plan
from excise.measure.assemble import Assembled, assembled
from excise.measure.decide import Asked, Planned, begun_limits, decide, refuse_another
from excise.measure.load import arrivals
from excise.measure.progress import Progress
from excise.measure.record import StudyRecord, TrialRecord
from excise.measure.store import HEAD, Ledger, Study, check_free, read_head, read_study
from excise.measure.study import Conditions, run_loads, run_slots, sweep, tidy
from excise.substrates import registry
from excise.tasks import cache


async def conduct(
    asked: Asked, directory: Path, progress: Progress, *, stop_after: int | None = None
) -> Study:
    """Run every trial that is not in `directory` yet, and read the study back.

    `stop_after` failures of one substrate in a row raise `Stopped`; without it the study goes on whatever fails.
    """
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
        async with assembled(planned, _name(directory), progress) as made:
            with Ledger.create(directory, made.record) as ledger:
                await _run(made, ledger, Study(made.record, []), progress, stop_after)
    return read_study(directory)


async def _run(
    made: Assembled, ledger: Ledger, study: Study, progress: Progress, stop_after: int | None
) -> None:
    record = made.record
    conditions = Conditions(
        study=record.id,
        session=record.session,
        quiet_s=plan.preset(record.preset).quiet_s,
        stop_after=stop_after,
    )
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
    return len(_slots(record)) + loads


def _left(study: Study) -> int:
    return planned_trials(study.record) - len(study.done)


async def _as_begun(asked: Asked, record: StudyRecord) -> Planned:
    """The plan of a study that was begun, if this is still the same host and the same question."""
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
