"""A study as two Parquet tables: one row per trial, one row per action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from excise.errors import InputError
from excise.measure.record import Noise, Readied, TrialRecord
from excise.measure.store import Study, staged
from excise.tax.breakdown import ConservationError, break_down

Row = dict[str, object]
COMPONENTS = (
    "queue_ns",
    "create_ns",
    "ready_ns",
    "set_up_ns",
    "acting_ns",
    "dispatch_ns",
    "inside_ns",
    "gap_ns",
    "cleanup_ns",
    "total_ns",
    "tti_ns",
    "episode_ns",
)
NOISE = Noise.__struct_fields__
READIED = Readied.__struct_fields__


def export(study: Study, directory: Path) -> tuple[Path, Path]:
    """Write `trials.parquet` and `actions.parquet` into a new or empty directory."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'excise[study]'") from None
    names = ("trials", "actions")
    with staged(directory) as place:
        for name, rows in zip(names, (trial_rows(study), action_rows(study)), strict=True):
            table = pa.Table.from_pylist(list(rows))
            about = {b"excise.study": msgspec.json.encode(study.record)}
            table = table.replace_schema_metadata(about)
            parquet.write_table(table, place / f"{name}.parquet", compression="zstd")
    return directory / "trials.parquet", directory / "actions.parquet"


def trial_rows(study: Study) -> Iterator[Row]:
    """One row per trial, with its components where it came to its end."""
    for t in study.trials:
        row: Row = {**_who(t), "outcome": t.outcome, "seed": t.seed, "warm_up": t.warm_up}
        row |= {"tree": t.tree, "cache": t.cache, "load": t.load, "clipped": t.clipped}
        row |= {f"at_{name}_ns": t.marks.get(name) for name in MARKS}
        row |= dict.fromkeys(COMPONENTS) | _components(t)
        row |= {f"noise_{name}": getattr(t.noise, name) for name in NOISE}
        row |= {f"readied_{name}": getattr(t.readied, name, None) for name in READIED}
        row["error"] = None if t.error is None else f"{t.error.type}: {t.error.message}"
        row["error_phase"] = None if t.error is None else t.error.phase
        yield row


MARKS = (
    "due",
    "requested",
    "created",
    "answered",
    "ready_seen",
    "ready",
    "set_up",
    "teardown",
    "gone",
)


def action_rows(study: Study) -> Iterator[Row]:
    """One row per action, set-up included, in the order they were run."""
    for t in study.trials:
        for phase, actions in (("set_up", t.set_up), ("run", t.actions)):
            for index, a in enumerate(actions):
                taken = msgspec.structs.asdict(a)
                yield {**_who(t), "phase": phase, "index": index, **taken}


def _who(t: TrialRecord) -> Row:
    return {
        "study": t.study,
        "session": t.session,
        "block": t.block,
        "position": t.position,
        "cell": t.cell,
        "substrate": t.substrate,
        "workload": t.workload,
        "task": t.task,
    }


def _components(t: TrialRecord) -> Row:
    try:
        parts = break_down(t.complete)
    except (KeyError, ConservationError):
        return {}
    return {name: getattr(parts, name) for name in COMPONENTS}
