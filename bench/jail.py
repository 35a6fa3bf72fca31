"""The jail against the floors of this host: how much of an action, a creation, a reset and a fork is ours.

B is posix_spawn and wait of /bin/true in C, H the least that a Python program on the host must do to run a
command and have its outputs. Needs root; the rows against other tools need those tools: apt install
bubblewrap crun runc, and an engine for docker (eval "$(lab/docker env)").
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from statistics import fmean, median

from bench.convention import Row, Sample, interleaved
from bench.host.baseline import TRUE, Baseline, capture
from bench.host.density import idle_memory, rate_of_64
from bench.host.rivals import rivals
from excise.jail.blocking import Jail, Sandbox
from excise.types import Action, Limits, Spec

SPEC = Spec(limits=Limits(memory_bytes=None))
"""Everything on; without a bound on memory, because these sandboxes hold 100 MB of files in it."""

ONE_TRUE = Action(TRUE)
SCRIPT = "echo hi"
MANY, FEW = (5000, 20_000), (10, 10_000)
"""Dirty files and the bytes of each."""
B, H = "B: spawn and wait in C", "H: spawn and capture in Python"
CYCLES = 10_000
PAUSE_S = 0.012
MIB = 1 << 20


def rows() -> Iterator[Row]:
    gc.freeze()
    with Jail() as jail, Baseline() as baseline:
        with jail.create(SPEC) as box:
            yield from _acting(box, baseline)
        yield from _coming_and_going(jail, baseline)
        yield from _branching(jail, baseline)
        yield _shared_by_64(baseline)
        yield _idle(jail)
    yield from _against_others()
    yield _ten_thousand()


def _acting(box: Sandbox, baseline: Baseline) -> Iterator[Row]:
    script = Action.shell(SCRIPT)

    def ahead() -> int:
        time.sleep(0.003)  # an agent thinks longer than the next shell takes to start
        start = time.perf_counter_ns()
        box.run(script)
        return time.perf_counter_ns() - start

    taken = interleaved(
        {
            "B": baseline.spawn_ns,
            "H": lambda: capture(TRUE),
            "ping": lambda: (box.ping(), None),  # the clock inside is no duration
            "true": lambda: box.run(ONE_TRUE),
            "bash": lambda: capture(("/bin/bash", "-c", SCRIPT)),
            "ahead": ahead,
        },
        rounds=400,
        warm_ups=20,
    )
    true = taken["true"]
    yield _row("agent ping", taken["ping"], taken["B"], B, 0.15, 0.09)
    yield _row("action, same argv", true, taken["H"], H, 1.20, 1.05)
    spread = true.p95_us / true.p50_us
    yield _made("action p95 over its p50", spread, "its own p50", 1.4, 1.15, true)
    yield _row(
        "shell builtin, shell started ahead", taken["ahead"], taken["bash"], "bash -c on the host", 0.45, 0.32
    )  # fmt: skip


def _coming_and_going(jail: Jail, baseline: Baseline) -> Iterator[Row]:
    leaving: list[Sandbox] = []
    resets = jail.create(SPEC)
    steady = jail.create(SPEC)

    def create() -> None:
        box = jail.create(SPEC)
        box.ping()
        leaving.append(box)

    def reset_and_act() -> None:
        resets.reset()
        resets.run(ONE_TRUE)

    taken = interleaved(
        {
            "B": lambda: _rested(baseline.spawn_ns),
            "create": lambda: _rested(create),
            "destroy": lambda: _timed(lambda: leaving.pop().destroy()),
        },
        rounds=300,
        warm_ups=20,
        rotate=False,
    )
    yield _row("create to first ping, everything on", taken["create"], taken["B"], B, 2.8, 2.1)
    yield _row("destroy returns", taken["destroy"], taken["B"], B, 0.1, 0.02)
    taken = interleaved(
        {
            "reset": lambda: _rested(reset_and_act),
            "act": lambda: _rested(lambda: steady.run(ONE_TRUE)),
        },
        rounds=300,
        warm_ups=20,
    )
    again, act = taken["reset"], taken["act"]
    yield _row("reset and first action", again, act, "a steady action", 1.35, 1.2)
    resets.destroy()
    steady.destroy()


def _rested(call: Callable[[], object]) -> int:
    """Its nanoseconds after a pause, in which what the one before left to be done behind its back is done.

    The pause is an agent's thought, and a rested processor is slower: so every candidate has one before it.
    What is done meanwhile is not free, and shows in the cycles without a pause.
    """
    time.sleep(PAUSE_S)
    return _timed(call)


def _timed(call: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    timed = call()
    return timed if type(timed) is int else time.perf_counter_ns() - start


def _branching(jail: Jail, baseline: Baseline) -> Iterator[Row]:
    """A fork is a snapshot and a creation on it; what it adds to a creation, for much and for little."""
    for files, size in (MANY, FEW):
        what = f"{files:,} dirty files, {files * size / 1e6:.3g} MB"
        added, b = _fork_added(jail, baseline, files, size)
        value = added.p50_us / b.p50_us
        yield _made(f"fork of {what}, added to a create", value, B, 0.3, 0.15, added)


def _fork_added(jail: Jail, baseline: Baseline, files: int, size: int) -> tuple[Sample, Sample]:
    added, floor = [], []
    dirty = f"head -c {files * size} /dev/zero | split -a 4 -b {size}"
    for _ in range(12):
        with jail.create(SPEC) as parent:
            parent.run(Action.shell(dirty, timeout_s=None))
            reference = parent.snapshot()
            branch = Spec(image=reference, limits=SPEC.limits)
            for _ in range(8):
                floor.append(baseline.spawn_ns() / 1000)
                plain, forked = _create_us(jail, SPEC), _create_us(jail, branch)
                added.append(forked - plain)
            jail.forget(reference)
    return Sample(tuple(added)), Sample(tuple(floor))


def _create_us(jail: Jail, spec: Spec) -> float:
    start = time.perf_counter_ns()
    box = jail.create(spec)
    box.ping()
    took = (time.perf_counter_ns() - start) / 1000
    box.destroy()
    time.sleep(0.003)
    return took


def _shared_by_64(baseline: Baseline) -> Row:
    ours, theirs = rate_of_64(baseline)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    per_action = Sample(tuple(1e6 / rate for rate in ours))
    return Row(
        "64 sandboxes acting at once, actions per second", median(ratios), "bare loops in C, one per core",
        0.85, 0.95, len(ratios), per_action.p50_us, per_action.p95_us, higher=True,
    )  # fmt: skip


def _idle(jail: Jail) -> Row:
    mib, boxes = idle_memory(jail, SPEC)
    return Row("idle sandbox, its memory and the kernel's", mib, "MiB", 0.5, 0.35, boxes, 0.0, 0.0)


def _against_others() -> Iterator[Row]:
    with Jail() as jail:
        for name, reach, aim, ours, theirs in rivals(jail, SPEC):
            value = theirs.p50_us / ours.p50_us
            yield Row(
                f"create, true, destroy: faster than {name}", value, name, reach, aim,
                len(ours.times_us), ours.p50_us, ours.p95_us, higher=True,
            )  # fmt: skip


def _ten_thousand() -> Row:
    """Does it grow slower with use? Of each thousand cycles the slowest hundredth."""
    times = []
    with Jail() as jail:
        for _ in range(CYCLES):
            start = time.perf_counter_ns()
            with jail.create(SPEC) as box:
                box.run(ONE_TRUE)
            times.append((time.perf_counter_ns() - start) / 1000)
    first, last = (sorted(part)[990] for part in (times[:1000], times[-1000:]))
    drift = last / first
    return Row(
        f"{CYCLES:,} cycles: p99 of the last thousand", drift, "p99 of the first thousand",
        1.1, 1.0, CYCLES, fmean(times), Sample(tuple(times)).p95_us,
    )  # fmt: skip


def _row(name: str, taken: Sample, against: Sample, baseline: str, reach: float, aim: float) -> Row:
    return _made(name, taken.p50_us / against.p50_us, baseline, reach, aim, taken)


def _made(name: str, value: float, baseline: str, reach: float, aim: float, taken: Sample) -> Row:
    return Row(name, value, baseline, reach, aim, len(taken.times_us), taken.p50_us, taken.p95_us)
