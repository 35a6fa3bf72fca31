"""A study under way: every planned trial once, each written down as it ends, whatever ends the program."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from excise.clock import Clock, SystemClock
from excise.errors import ExciseError, SubstrateError
from excise.measure import noise, page_cache, plan, ready
from excise.measure.judge import judge
from excise.measure.load import arrivals, run_load, workers_of
from excise.measure.plan import Slot
from excise.measure.progress import Progress, Silent
from excise.measure.record import Cell, TrialRecord
from excise.measure.store import Ledger
from excise.measure.trial import Setting, perform
from excise.substrates.base import Closes, Paced, SpawnsItself, Substrate, Sweeps


@dataclass(frozen=True, slots=True)
class Conditions:
    """How trials are run, the same for all of them."""

    study: str
    session: int = 1
    clock: Clock = field(default_factory=SystemClock)
    quiet_s: float = 0.0
    drop_page_cache: Callable[[], None] = page_cache.drop
    deadline_s: float | None = None
    """None: what the workload's own time limits add up to, and two minutes."""
    stop_after: int | None = None
    """So many failures of one substrate in a row end the study for now; None: it goes on whatever fails."""


class Stopped(ExciseError):
    """A substrate has failed too often in a row. What was recorded is valid, and the study can be gone on with."""


class _Patience:
    """How often each substrate has failed since it last came through."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._in_a_row: dict[str, int] = {}

    def seen(self, label: str, record: TrialRecord) -> None:
        broken = record.outcome in ("substrate_error", "timeout")
        self._in_a_row[label] = self._in_a_row.get(label, 0) + 1 if broken else 0
        if self._most is not None and self._in_a_row[label] >= self._most:
            why = record.error.message.splitlines()[0] if record.error else record.outcome
            raise Stopped(f"{label} has failed {self._most} times in a row: {why}")


async def run_slots(
    slots: Sequence[Slot],
    settings: Mapping[str, Setting],
    ledger: Ledger,
    conditions: Conditions,
    *,
    done: Collection[tuple[int, int, str]] = (),
    progress: Progress | None = None,
) -> int:
    """Run what has not been done yet, in the planned order; returns how many trials that were."""
    progress = progress or Silent()
    left = [s for s in slots if s.key not in done]
    patience = _Patience(conditions.stop_after)
    progress.begin(left)
    gc.collect()
    gc.freeze()
    try:
        for slot in left:
            began = conditions.clock.now_ns()
            record = await run_slot(slot, settings[slot.cell.name], conditions)
            ledger.append(record)
            progress.ended(record, (conditions.clock.now_ns() - began) / 1e9)
            patience.seen(slot.cell.label, record)
    finally:
        gc.unfreeze()
        progress.finish()
    return len(left)


async def run_slot(slot: Slot, setting: Setting, conditions: Conditions) -> TrialRecord:
    """One trial: wait until it is quiet, run, read the noise, judge."""
    clock = conditions.clock
    waited_s = await noise.wait_until_quiet(clock, conditions.quiet_s)
    readying = await ready.begin(setting.substrate, setting.spec)
    if slot.cell.cache == "cold-page":
        await asyncio.to_thread(conditions.drop_page_cache)
    if isinstance(setting.substrate, Paced):
        await clock.sleep(plan.moment_s(slot, setting.substrate.interval_s))
    before = noise.Reading.take()
    with _no_garbage_collection():
        seen = await perform(
            setting, clock=clock, nonce=f"{slot.seed:08x}", deadline_s=conditions.deadline_s
        )
    around = noise.between(
        before, noise.Reading.take(), waited_s=waited_s, all_ours=_all_ours(setting.substrate)
    )
    record = judge(seen, setting, slot, study=conditions.study)
    return replace(record, noise=around, readied=readying.told())


async def run_loads(
    cells: Iterable[Cell],
    settings: Mapping[str, Setting],
    ledger: Ledger,
    conditions: Conditions,
    *,
    seed: int,
    done: Collection[tuple[int, int, str]] = (),
    progress: Progress | None = None,
) -> int:
    """Every load cell that is not done, each as a whole: half a burst is none."""
    progress = progress or Silent()
    ran = 0
    for cell in cells:
        count = len(arrivals(cell.load or "", seed))
        if all((conditions.session, i, cell.name) in done for i in range(count)):
            continue
        progress.say(f"{cell.name}: {count} sandboxes")
        await noise.wait_until_quiet(conditions.clock, conditions.quiet_s)
        setting = settings[cell.name]
        at_once = workers_of(cell.load or "") or count
        readying = await ready.begin(setting.substrate, setting.spec, at_once)
        before = noise.Reading.take()
        async with noise.Ebb() as ebb:
            with _no_garbage_collection():
                records = await run_load(
                    setting,
                    clock=conditions.clock,
                    study=conditions.study,
                    session=conditions.session,
                    seed=seed,
                )
        ours = _all_ours(setting.substrate)
        around = noise.between(before, noise.Reading.take(), all_ours=ours)
        around = replace(around, lowest_bytes=ebb.lowest_bytes)
        readied = readying.told(count)
        ledger.append(*(replace(r, noise=around, readied=readied) for r in records))
        ran += len(records)
    return ran


def _all_ours(substrate: Substrate) -> bool:
    return isinstance(substrate, SpawnsItself) and substrate.spawns_itself


async def sweep(substrates: Iterable[Substrate]) -> int:
    """Remove what killed owners left behind, before and after a study."""
    return sum([await s.sweep() for s in substrates if isinstance(s, Sweeps)])


async def tidy(substrates: Iterable[Substrate], progress: Progress) -> None:
    """The last sweep: where it fails, that is said, and the study that was run is none the worse."""
    try:
        await sweep(substrates)
    except SubstrateError as error:
        progress.say(f"could not look for sandboxes that were left behind: {error}")


async def close(substrates: Iterable[Substrate]) -> None:
    """Let go of connections."""
    for substrate in substrates:
        if isinstance(substrate, Closes):
            await substrate.close()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a trial would be measured as the substrate's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
