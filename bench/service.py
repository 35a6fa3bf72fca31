"""The service against the bare host and the jail in one's own process: what HTTP, keys and books cost an action.

H is the least that a Python program on the host must do to run a command and have its outputs. The service is a
process of its own, with its defaults: a pool before the jail, every rollout's tax kept. Needs jails.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from statistics import median

from bench.convention import Row, Sample, interleaved
from bench.host.baseline import TRUE, capture
from bench.host.served import Served
from excise.jail.blocking import Jail
from excise.jail.substrate import Jail as AsyncJail
from excise.service.marks import ActionTimes
from excise.service.metrics import Metrics
from excise.service.sandbox import AtEnd, Sandbox, Wanted
from excise.service.taxes import Taxes
from excise.substrates.base import Substrate
from excise.substrates.remote import connect
from excise.substrates.remote.blocking import Service
from excise.types import Action, Handle, Limits, Observation, Spec

ONE_TRUE = Action(TRUE)
SPEC = Spec(limits=Limits(cpus=None))
H = "H: spawn and capture in Python"
LIVE, SECONDS, TURNS = 64, 1.5, 5
SOAK_ACTIONS = int(os.environ.get("EXCISE_SOAK", "5000"))
SOAK_BOXES = SOAK_ACTIONS // 10
BURST = 100


def rows() -> Iterator[Row]:
    gc.freeze()
    with Served() as served:
        yield from _one(served)
        yield _books(served)
        yield _many(served)
        yield _burst(served)
    with Served() as served:
        yield _memory(served)


def _one(served: Served) -> Iterator[Row]:
    """One client, one sandbox at a time: an action, and everything from asking for a sandbox to its first command."""
    with Service(served.url, served.key) as service, Jail() as jail, jail.create() as inside:
        for _ in range(10):
            service.create().destroy()
        with service.create() as box:
            taken = interleaved(
                {
                    "H": lambda: capture(TRUE),
                    "jail": lambda: inside.run(ONE_TRUE),
                    "service": lambda: box.run(ONE_TRUE),
                },
                rounds=400,
                warm_ups=20,
            )
        action, host = taken["service"], taken["H"]
        yield _row("action `true`, native client", action.p50_us / host.p50_us, H, 1.6, 1.3, action)
        in_process = taken["jail"]
        ratio = action.p50_us / in_process.p50_us
        yield _row(
            "action `true`, native client",
            ratio,
            "the jail in one's own process",
            1.6,
            1.25,
            action,
        )
        coming = interleaved(
            {"H": lambda: capture(TRUE), "first": lambda: _first(service)}, rounds=60, warm_ups=5
        )
        first = coming["first"]
        ratio = first.p50_us / coming["H"].p50_us
        yield _row("create to first command, pool hit", ratio, H, 6.0, 4.0, first)


def _first(service: Service) -> int:
    """A sandbox that the pool has had the time to make ready."""
    time.sleep(0.01)
    start = time.perf_counter_ns()
    box = service.create()
    box.run(ONE_TRUE)
    took = time.perf_counter_ns() - start
    box.destroy()
    return took


def _many(served: Served) -> Row:
    ours, theirs = [], []
    for _ in range(TURNS):
        theirs.append(asyncio.run(_acting(AsyncJail())))
        ours.append(asyncio.run(_acting(connect(served.url, served.key))))
    ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
    per_action = Sample(tuple(1e6 / rate for rate in ours))
    return Row(
        f"{LIVE} sandboxes, {LIVE} clients: actions per second", ratio, "the jail in one's own process",
        0.5, 0.7, TURNS, per_action.p50_us, per_action.p95_us, higher=True,
    )  # fmt: skip


async def _acting(substrate: Substrate) -> float:
    """Every sandbox acts as soon as its last action has ended."""
    boxes = await asyncio.gather(*(substrate.create(SPEC) for _ in range(LIVE)))
    done = 0

    async def loop(box: Handle, until: float) -> None:
        nonlocal done
        while time.monotonic() < until:
            await substrate.run(box, ONE_TRUE)
            done += 1

    await asyncio.gather(*(substrate.run(box, ONE_TRUE) for box in boxes))
    start = time.monotonic()
    await asyncio.gather(*(loop(box, start + SECONDS) for box in boxes))
    took = time.monotonic() - start
    await asyncio.gather(*(substrate.destroy(box) for box in boxes))
    await substrate.close()  # type: ignore[attr-defined]
    return done / took


def _burst(served: Served) -> Row:
    """All at once, each to its first command; a failure would raise."""
    ours, theirs = [], []
    for _ in range(TURNS):
        theirs.append(asyncio.run(_all_at_once(AsyncJail())))
        ours.append(asyncio.run(_all_at_once(connect(served.url, served.key))))
    ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
    wall = Sample(tuple(ours))
    name = f"{BURST} creates at once, each to its first command"
    return _row(name, ratio, "the jail in one's own process", 2.0, 1.4, wall)


async def _all_at_once(substrate: Substrate) -> float:
    """Microseconds until all have answered."""

    async def one() -> Handle:
        box = await substrate.create(SPEC)
        await substrate.run(box, ONE_TRUE)
        return box

    start = time.perf_counter_ns()
    boxes = await asyncio.gather(*(one() for _ in range(BURST)))
    took_us = (time.perf_counter_ns() - start) / 1000
    await asyncio.gather(*(substrate.destroy(box) for box in boxes))
    await substrate.close()  # type: ignore[attr-defined]
    return took_us


def _books(served: Served) -> Row:
    """What keeping the tax adds to an action: the very calls, against an action through the service."""
    taxes, found = Taxes(Metrics()), Observation(0, inside_ns=500_000)
    sandbox = _unreal()
    costs = []
    for _ in range(200):
        sandbox.times = ActionTimes()
        start = time.perf_counter_ns()
        for at in range(100):
            taxes.acted(sandbox, at, at + 600_000, found)
        costs.append((time.perf_counter_ns() - start) / 100 / 1000)
    with Service(served.url, served.key) as service, service.create() as box:
        action = interleaved({"action": lambda: box.run(ONE_TRUE)}, rounds=100)["action"]
    cost = Sample(tuple(costs))
    share = cost.p50_us / action.p50_us
    return _row("the tax of an action kept in the books", share, "that action", 0.01, 0.005, cost)


def _unreal() -> Sandbox:
    return Sandbox(
        id="", owner="", wanted=Wanted(), spec=SPEC, handle=Handle(""), token="", asked_ns=0,
        created_ns=0, ready_ns=0, used_ns=0, deadline_ns=None, idle_s=None,
        at_end=AtEnd.DESTROY, at_rest_end=AtEnd.DESTROY, at_idle=None, rest_s=None, processes=None,  # type: ignore[arg-type]
        name="", labels={},
    )  # fmt: skip


def _memory(served: Served) -> Row:
    """The same work again and again: what the last time adds is no cache. EXCISE_SOAK=100000 for the long one."""
    _soak(served)
    start = time.perf_counter_ns()
    _soak(served)
    before = served.resident_kib
    _soak(served)
    after = served.resident_kib
    took_us = (time.perf_counter_ns() - start) / 1000
    per_action = took_us / 2 / SOAK_ACTIONS
    return Row(
        f"memory after {3 * SOAK_ACTIONS:,} actions, {3 * SOAK_BOXES:,} sandboxes", after / before,
        "after two thirds of them", 1.03, 1.0, 2 * SOAK_ACTIONS, per_action, per_action,
    )  # fmt: skip


def _soak(served: Served) -> None:
    async def work() -> None:
        remote = connect(served.url, served.key)
        each = SOAK_ACTIONS // SOAK_BOXES
        gate = asyncio.Semaphore(16)

        async def one() -> None:
            async with gate:
                box = await remote.create(Spec())
                for _ in range(each):
                    await remote.run(box, ONE_TRUE)
                await remote.destroy(box)

        await asyncio.gather(*(one() for _ in range(SOAK_BOXES)))
        await remote.close()

    asyncio.run(work())


def _row(name: str, value: float, baseline: str, reach: float, aim: float, taken: Sample) -> Row:
    return Row(name, value, baseline, reach, aim, len(taken.times_us), taken.p50_us, taken.p95_us)
