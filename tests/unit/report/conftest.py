"""Studies built from written-down times, so that every number of a report is known beforehand."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import msgspec
import pytest

from excise.measure.record import (
    ActionRecord,
    Cell,
    Failure,
    Noise,
    Overhead,
    StudyRecord,
    TrialRecord,
)

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Times:
    """One trial's times in milliseconds; `inside` None means that nothing timed the command in there."""

    create: float = 100.0
    ready: float = 10.0
    set_up: float = 0.0
    queue: float = 0.0
    work: tuple[float, ...] = (20.0,)
    slowdown: float = 1.0
    dispatch: float = 5.0
    gap: float = 0.0
    cleanup: float = 30.0
    inside: bool = True


def trial(cell: Cell, block: int, times: Times, **changes: object) -> TrialRecord:
    """The record of a trial that took exactly these times."""
    now = 1_000_000_000 * (100 + block)
    marks = {"due": now}

    def pass_ms(span: float) -> int:
        nonlocal now
        now += round(span * MS)
        return now

    marks["requested"] = pass_ms(times.queue)
    marks["created"] = pass_ms(times.create)
    marks["ready"] = pass_ms(times.ready)
    set_up: tuple[ActionRecord, ...] = ()
    if times.set_up:
        start = now
        inside = round((times.set_up - times.dispatch) * MS) if times.inside else None
        set_up = (
            ActionRecord(
                kind="clone",
                sent_ns=start,
                received_ns=pass_ms(times.set_up),
                inside_ns=inside,
                exit_code=0,
                golden=True,
            ),
        )
    marks["set_up"] = now
    actions = []
    for work in times.work:
        sent = pass_ms(times.gap)
        inside_ms = work + times.slowdown
        actions.append(
            ActionRecord(
                kind="command",
                sent_ns=sent,
                received_ns=pass_ms(inside_ms + times.dispatch),
                inside_ns=round(inside_ms * MS) if times.inside else None,
                exit_code=0,
                golden=True,
            )
        )
    marks["teardown"] = now
    marks["gone"] = pass_ms(times.cleanup)
    record = TrialRecord(
        study="written-down",
        block=block,
        position=0,
        cell=cell.name,
        substrate=cell.substrate,
        workload=cell.workload,
        task=cell.workload.partition(":")[2] or None,
        actions_planned=len(times.work),
        seed=1,
        marks=marks,
        set_up=set_up,
        actions=tuple(actions),
        outcome="ok",
        noise=Noise(cpu_s=0.5, steal_share=0.0),
    )
    return msgspec.structs.replace(record, **changes)


def broken(
    cell: Cell, block: int, *, actions: int = 1, message: str = "the engine went away"
) -> TrialRecord:
    """A trial that got no further than its request."""
    return TrialRecord(
        study="written-down",
        block=block,
        position=0,
        cell=cell.name,
        substrate=cell.substrate,
        workload=cell.workload,
        actions_planned=actions,
        seed=1,
        marks={"due": 0, "requested": 10},
        outcome="substrate_error",
        error=Failure(type="SubstrateError", message=message, phase="create"),
    )


def head(cells: tuple[Cell, ...], *, blocks: int, **changes: object) -> StudyRecord:
    """The head of such a study."""
    record = StudyRecord(
        id="written-down",
        started="2026-11-18T12:00:00+00:00",
        preset="quick",
        seed=1,
        blocks=blocks,
        warm_ups=0,
        version="0.1.0",
        cells=cells,
        host={"cpu": "Written-down CPU", "cores": 2, "kernel": "6.1", "hostname": "example"},
        substrates={c.label: {"isolation": "container", "version": "1.2.3"} for c in cells},
        overhead=Overhead(trial_us=(120.0, 300.0), action_us=(8.0, 21.0), clock_ns=76.0, trials=50),
    )
    return msgspec.structs.replace(record, **changes)


KIND = {"bare": "local", "bare-again": "local", "hosted": "e2b"}
SUBSTRATES = {
    "bare": Times(create=1, ready=1.2, dispatch=0.6, slowdown=0.0, cleanup=1),
    "bare-again": Times(create=1, ready=1.2, dispatch=0.6, slowdown=0.0, cleanup=1),
    "hosted": Times(create=150, ready=30, dispatch=30, slowdown=3.0, cleanup=40, inside=False),
    "docker": Times(create=420, ready=85, dispatch=62, slowdown=1.5, cleanup=210),
    "podman": Times(create=450, ready=90, dispatch=70, slowdown=1.5, cleanup=220),
    "kubernetes": Times(create=2600, ready=240, dispatch=115, slowdown=2.0, cleanup=900),
    "vm": Times(create=15000, ready=3900, dispatch=120, slowdown=5.0, cleanup=2500),
}
WORK = {"inspect": 3.0, "command": 30.0, "edit": 3.1, "test": 217.0}
CYCLE = tuple(WORK[k] for k in ("inspect",) * 4 + ("command",) * 2 + ("edit",) * 2 + ("test",) * 2)
WORKLOADS = {
    "T0": (0.0, (1.2,)),
    "T1:attrs-1417": (0.0, (2.5, 2.8, 4.0, 4.1, 43.0, 2.0)),
    "T2:attrs-1417": (
        109.0,
        (2.5, 2.8, 4.0, 4.1, 43.0, 2.0, 8.0, 300.0, 9.0, 263.0, 263.0, 6.0, 5.0),
    ),
    "K10:attrs-1417": (109.0, CYCLE),
    "K50:attrs-1417": (109.0, CYCLE * 5),
    "K150:attrs-1417": (109.0, CYCLE * 15),
}


def study(
    labels: tuple[str, ...] = ("bare", "docker"),
    workloads: tuple[str, ...] = tuple(WORKLOADS),
    *,
    blocks: int = 5,
    spread: float = 0.05,
    fail: dict[str, float] | None = None,
    warm_ups: int = 1,
) -> tuple[StudyRecord, list[TrialRecord]]:
    """A whole study with lognormal noise of a fixed seed; `fail` is the share of broken trials by label."""
    random_ = random.Random(7)
    cells = tuple(
        Cell(label=s, substrate=KIND.get(s, s), workload=w) for w in workloads for s in labels
    )
    trials = []
    for block in range(-warm_ups, blocks):
        for cell in cells:
            noise = random_.lognormvariate(0, spread) if spread else 1.0
            start = random_.lognormvariate(0, 2 * spread) if spread else 1.0
            base = SUBSTRATES[cell.label]
            set_up, work = WORKLOADS[cell.workload]
            slower = 0.0 if set_up == 0 else base.dispatch
            times = replace(
                base,
                create=base.create * start,
                ready=base.ready * start,
                cleanup=base.cleanup * start,
                dispatch=base.dispatch * noise,
                set_up=(set_up + slower) * noise,
                work=tuple(w * noise for w in work),
                gap=0.01,
            )
            if block >= 0 and random_.random() < (fail or {}).get(cell.label, 0.0):
                trials.append(broken(cell, block, actions=len(work)))
            else:
                trials.append(trial(cell, block, times, warm_up=block < 0))
    return head(cells, blocks=blocks, warm_ups=warm_ups), trials


@pytest.fixture(scope="session")
def build():
    """The builders above, for tests (which import nothing from each other)."""

    class Build:
        times = Times
        trial = staticmethod(trial)
        broken = staticmethod(broken)
        head = staticmethod(head)
        study = staticmethod(study)

    return Build
