"""Several sessions of one study as one: only of like hosts, and only where the labels mean the same."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from excise.errors import InputError
from excise.measure import host
from excise.measure.record import Cell, Noted, StudyRecord
from excise.measure.store import Study


def merge(studies: Sequence[Study]) -> Study:
    """All trials in one study; each study becomes a session of its own, or several if it had several."""
    if len(studies) < 2:
        raise InputError("merging takes at least two studies")
    first = studies[0].record
    _refuse_the_same_twice(studies)
    for other in studies[1:]:
        _refuse_unlike(first, other.record)
    trials, sessions = [], 0
    for study in studies:
        trials += [replace(t, session=t.session + sessions) for t in study.trials]
        sessions += max([study.record.session, *(t.session for t in study.trials)])
    cells = _counted(studies)
    record = replace(
        first,
        id="+".join(s.record.id for s in studies),
        started=min(s.record.started for s in studies),
        session=sessions,
        blocks=max(s.record.blocks for s in studies),
        merged=True,
        cells=cells,
        substrates={k: v for s in reversed(studies) for k, v in s.record.substrates.items()},
        skipped={k: v for s in studies for k, v in s.record.skipped.items()},
        doubts=_all_doubts(studies),
    )
    return Study(record, trials)


def _counted(studies: Sequence[Study]) -> tuple[Cell, ...]:
    """Every cell once, with the blocks and warm-ups that all of them have planned for it."""
    found: dict[str, Cell] = {}
    for record in (s.record for s in studies):
        for cell in record.cells:
            before = found.get(cell.name)
            blocks = record.blocks if cell.blocks is None else min(cell.blocks, record.blocks)
            warm_ups = record.warm_ups if cell.warm_ups is None else cell.warm_ups
            if before is not None:
                blocks, warm_ups = blocks + (before.blocks or 0), warm_ups + (before.warm_ups or 0)
            found[cell.name] = replace(cell, blocks=blocks, warm_ups=warm_ups)
    return tuple(found.values())


def _refuse_the_same_twice(studies: Sequence[Study]) -> None:
    seen: set[str] = set()
    for study in studies:
        parts = set(study.record.id.split("+"))
        if parts & seen:
            raise InputError(f"study {study.record.id} would be merged twice")
        seen |= parts


def _refuse_unlike(a: StudyRecord, b: StudyRecord) -> None:
    apart = host.unlike(a.host, b.host)
    if apart:
        raise InputError(
            f"{b.id} is of another host than {a.id} ({'; '.join(apart)}): their times do not mix"
        )
    if a.version != b.version:
        raise InputError(
            f"{a.id} was made by Excise {a.version}, {b.id} by {b.version}: run it again"
        )
    if a.limits != b.limits or a.placement != b.placement:
        raise InputError(f"{a.id} and {b.id} had other limits or cores: their times do not mix")
    ours = {c.name: c for c in a.cells}
    for cell in b.cells:
        mine = ours.get(cell.name)
        if mine is not None and _meaning(mine) != _meaning(cell):
            raise InputError(f"{cell.name} is not the same substrate in {a.id} and {b.id}")
    for workload, digest in b.references.items():
        if a.references.get(workload, digest) != digest:
            raise InputError(f"{workload} gave other observations in {b.id} than in {a.id}")
    for label, said in b.substrates.items():
        if a.substrates.get(label, said) != said:
            raise InputError(f"{label} had other versions or settings in {b.id} than in {a.id}")


def _meaning(cell: Cell) -> tuple[str, dict[str, str]]:
    return cell.substrate, cell.options


def _all_doubts(studies: Sequence[Study]) -> tuple[Noted, ...]:
    return tuple({d.text: d for s in studies for d in s.record.doubts}.values())
