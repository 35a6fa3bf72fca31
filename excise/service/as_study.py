"""Live traffic as a study: the same records under one head, so that reports and projections work on them.

There is no bare process to hold live actions against, so work is what the sandbox itself timed; and the time
between two actions, which is the model's, counts as time that a worker was held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from excise import __version__
from excise.errors import InputError
from excise.measure.host import facts
from excise.measure.record import Cell, Noted, StudyRecord, TrialRecord
from excise.measure.store import write_study

PRESET = "live"


def write(directory: Path, lines: Iterable[bytes], substrate: str) -> int:
    """Write what a service has kept as a study; how many rollouts that are."""
    trials = _numbered(_trials(lines))
    if not trials:
        raise InputError("the service has kept no rollout yet: end a sandbox first")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    cells = {
        t.cell: Cell(label=t.substrate, substrate=substrate, workload=t.workload) for t in trials
    }
    record = StudyRecord(
        id="live",
        started=started,
        preset=PRESET,
        seed=0,
        blocks=max(t.block for t in trials) + 1,
        warm_ups=0,
        version=__version__,
        cells=tuple(cells.values()),
        host=facts(directory.absolute().parent),
        doubts=(
            Noted(
                kind="live",
                text="these are live rollouts: nothing was held constant between them",
                advice="compare what a controlled study of the same workload says",
            ),
        ),
    )
    write_study(directory, record, trials)
    return len(trials)


def _trials(lines: Iterable[bytes]) -> list[TrialRecord]:
    decode = msgspec.json.Decoder(TrialRecord).decode
    try:
        return [decode(line) for line in lines if line.strip()]
    except msgspec.MsgspecError as error:
        raise InputError(f"that is no record of a rollout: {error}") from error


def _numbered(trials: list[TrialRecord]) -> list[TrialRecord]:
    """A block each time that a cell comes again: of several processes of a service the numbers may repeat."""
    seen: dict[str, int] = {}
    found = []
    for trial in trials:
        block = seen[trial.cell] = seen.get(trial.cell, -1) + 1
        found.append(msgspec.structs.replace(trial, block=block))
    return found
