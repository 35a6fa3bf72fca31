"""Many sandboxes at once: what they get done together, and what one that does nothing costs."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from bench.host.baseline import TRUE, Baseline
from excise.jail.blocking import Jail
from excise.jail.substrate import Jail as AsyncJail
from excise.types import Action, Limits, Spec

LIVE = 64
SECONDS = 2.0
TURNS = 5


def rate_of_64(baseline: Baseline) -> tuple[list[float], list[float]]:
    """Actions per second of 64 sandboxes under one event loop, and of bare loops, taken in turns."""
    ours, theirs = [], []
    cores = len(os.sched_getaffinity(0))
    for _ in range(TURNS):
        theirs.append(baseline.loops(TRUE, cores, SECONDS))
        ours.append(asyncio.run(_acting()))
    return ours, theirs


async def _acting() -> float:
    """Every sandbox acts as soon as its last action has ended."""
    jail = AsyncJail()
    spec, true = Spec(limits=Limits(cpus=None)), Action(TRUE)
    boxes = await asyncio.gather(*(jail.create(spec) for _ in range(LIVE)))
    done = 0

    async def loop(box: str, until: float) -> None:
        nonlocal done
        while time.monotonic() < until:
            await jail.run(box, true)  # type: ignore[arg-type]
            done += 1

    await asyncio.gather(*(jail.run(box, true) for box in boxes))
    start = time.monotonic()
    await asyncio.gather(*(loop(box, start + SECONDS) for box in boxes))
    took = time.monotonic() - start
    await jail.close()
    return done / took


def idle_memory(jail: Jail, spec: Spec) -> tuple[float, int]:
    """MiB of one idle sandbox: its own processes' share, and what the kernel holds for it."""
    jail.create(spec).destroy()
    time.sleep(1)
    before = _kernel_kib()
    boxes = [jail.create(spec) for _ in range(LIVE)]
    for box in boxes:
        box.ping()
    time.sleep(1)
    kernel = (_kernel_kib() - before) / LIVE
    own = sum(_pss_kib(box.pid) for box in boxes) / LIVE
    for box in boxes:
        box.destroy()
    return (kernel + own) / 1024, LIVE


def _kernel_kib() -> int:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    wanted = ("Slab:", "KernelStack:", "PageTables:", "Percpu:", "Shmem:")
    return sum(int(words[1]) for words in lines if words[0] in wanted)


def _pss_kib(pid: int) -> int:
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return next(int(words[1]) for words in lines if words[0] == "Pss:")
