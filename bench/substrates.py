"""Other people's sandboxes with an agent inside and without: what their own exec costs, and what is left of it.

H is the least that a Python program on the host must do to run a command and have its outputs. Docker has to be
there, and podman, gVisor, Kubernetes, bubblewrap and guests are measured where they are:
lab/up docker podman gvisor kubernetes vm; eval "$(lab/env)".
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

from bench.convention import Row, Sample, interleaved
from bench.host.baseline import TRUE, capture
from excise.errors import Phase
from excise.substrates.base import Closes, Substrate
from excise.substrates.registry import availability, open_substrate
from excise.substrates.vm.guests import Guests
from excise.types import Action, Handle, Spec

T = TypeVar("T")

H = "H: spawn and capture in Python"
ONE_TRUE = Action(TRUE)
BRIEF = Action(("sleep", "0.02"))
ENGINES = ("docker", "podman", "gvisor", "kubernetes")
OWN_EXEC = {
    "docker": (100, 40),
    "podman": (250, 100),
    "gvisor": (300, 100),
    "kubernetes": (250, 60),
}
"""Not ours to hasten: the bounds only say when a figure is not to be believed."""
THROUGH_AGENT = {
    "docker": (1.5, 1.3),
    "podman": (1.5, 1.3),
    "gvisor": (60, 20),
    "kubernetes": (2.0, 1.6),
}
"""Below gVisor starting a process is what costs, whoever asks for it; to a pod it is three proxies with TLS."""
OPTIONS = {"kubernetes": {"wait": "answer"}}
"""Elsewhere ready means that a command is answered; here what is placed could hide behind the kubelet's second."""
BWRAP = (15, 6)
GUESTS = {"vm": (1.5, 0.5), "vm-uml": (3, 1)}
"""Milliseconds above the floor: what of an action is neither the command nor the way to the guest and back. The agent of
user-mode Linux pays for each of its own system calls."""
ACTIONS, CREATIONS, TRIAL = 120, 16, 50


def rows() -> Iterator[Row]:
    with asyncio.Runner() as runner:
        bench = _Bench(runner)
        if "docker" not in bench.usable:
            sys.exit("docker cannot be used: " + bench.why["docker"])
        try:
            yield from _actions(bench)
            for engine in ENGINES:
                if engine in bench.usable:
                    yield _created(bench, engine)
            yield from _in_guests(bench)
            yield _own_time(bench)
        finally:
            bench.close()


class _Bench:
    """The substrates that can be used here, and one event loop for all of them."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._loop = runner.get_loop()
        self.usable: dict[str, Substrate] = {}
        self.why: dict[str, str] = {}
        for name in (*ENGINES, *(f"{engine}+agent" for engine in ENGINES), "bwrap", *GUESTS):
            found = self.do(availability(name))
            self.why[name] = str(found)
            if found.usable:
                self.usable[name] = open_substrate(name, **OPTIONS.get(name.partition("+")[0], {}))

    def do(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)

    def create(self, name: str) -> Handle:
        substrate = self.usable[name]
        box = self.do(substrate.create(Spec()))
        self.do(substrate.ready(box))
        return box

    def act(self, name: str, box: Handle, action: Action = ONE_TRUE) -> None:
        seen = self.do(self.usable[name].run(box, action))
        if not seen.ok:
            sys.exit(f"{name}: {seen.text}")

    def ping(self, name: str, box: Handle) -> None:
        guests = self.usable[name]
        assert isinstance(guests, Guests)
        resident = self.do(guests.resident(box, Phase.RUN))
        self.do(resident.agent.ping())

    def without_command(self, name: str, box: Handle) -> int:
        start = time.perf_counter_ns()
        seen = self.do(self.usable[name].run(box, ONE_TRUE))
        took = time.perf_counter_ns() - start
        if seen.inside_ns is None:
            sys.exit(f"{name}: {seen.text}")
        return took - seen.inside_ns

    def destroy(self, name: str, box: Handle) -> None:
        self.do(self.usable[name].destroy(box))

    def close(self) -> None:
        for substrate in self.usable.values():
            if isinstance(substrate, Closes):
                self.do(substrate.close())


def _actions(bench: _Bench) -> Iterator[Row]:
    boxes = {name: bench.create(name) for name in bench.usable if name not in GUESTS}
    try:
        taken = interleaved(
            {
                "H": lambda: capture(TRUE),
                **{name: _acting(bench, name, box) for name, box in boxes.items()},
            },
            rounds=ACTIONS,
        )
    finally:
        for name, box in boxes.items():
            bench.destroy(name, box)
    for engine in ENGINES:
        if engine in bench.usable:
            yield _over(f"action by {engine}'s own exec", taken, engine, OWN_EXEC[engine])
            inside = f"{engine}+agent"
            yield _over(f"action through {inside}", taken, inside, THROUGH_AGENT[engine])
    if "bwrap" in bench.usable:
        yield _over("action in a bubblewrap of its own", taken, "bwrap", BWRAP)


def _in_guests(bench: _Bench) -> Iterator[Row]:
    """The floor is the same line with nothing to do at its other end: a ping of the agent, through all of virtio."""
    for name, bounds in GUESTS.items():
        if name in bench.usable:
            box = bench.create(name)
            try:
                taken = interleaved(
                    {
                        "floor": lambda name=name, box=box: bench.ping(name, box),  # type: ignore[misc]
                        "way": lambda name=name, box=box: bench.without_command(name, box),  # type: ignore[misc]
                    },
                    rounds=ACTIONS,
                )
            finally:
                bench.destroy(name, box)
            above_ms = (taken["way"].p50_us - taken["floor"].p50_us) / 1000
            text = f"action in {name} without the command, in ms above the floor"
            yield _made(text, above_ms, "a ping of the agent", bounds, taken["way"])


def _acting(bench: _Bench, name: str, box: Handle) -> Callable[[], object]:
    return lambda: bench.act(name, box)


def _over(name: str, taken: Mapping[str, Sample], which: str, bounds: tuple[float, float]) -> Row:
    found = taken[which]
    return _made(name, found.p50_us / taken["H"].p50_us, H, bounds, found)


def _created(bench: _Bench, engine: str) -> Row:
    """From nothing to the first answer; removals are not timed."""
    taken = interleaved(
        {name: _creating(bench, name) for name in (engine, f"{engine}+agent")}, rounds=CREATIONS
    )
    plain, inside = taken[engine], taken[f"{engine}+agent"]
    value = inside.p50_us / plain.p50_us
    return _made(f"create with the agent in {engine}", value, "create without", (1.1, 1.0), inside)


def _creating(bench: _Bench, name: str) -> Callable[[], object]:
    def create() -> int:
        start = time.perf_counter_ns()
        box = bench.create(name)
        took = time.perf_counter_ns() - start
        bench.destroy(name, box)
        return took

    return create


def _own_time(bench: _Bench) -> Row:
    """What this process computes while a trial of brief actions runs, of what the trial takes."""
    name = "docker+agent"
    shares = []
    for _ in range(5):
        cpu, start = time.process_time_ns(), time.perf_counter_ns()
        box = bench.create(name)
        for _ in range(TRIAL):
            bench.act(name, box, BRIEF)
        bench.destroy(name, box)
        wall = time.perf_counter_ns() - start
        shares.append((time.process_time_ns() - cpu) / wall)
    found = Sample(tuple(share * 1e6 for share in shares))
    return _made(
        "harness CPU in a trial of 20 ms actions",
        found.p50_us / 1e6,
        "the trial",
        (0.05, 0.03),
        found,
    )


def _made(name: str, value: float, baseline: str, bounds: tuple[float, float], of: Sample) -> Row:
    return Row(name, value, baseline, *bounds, len(of.times_us), of.p50_us, of.p95_us)
