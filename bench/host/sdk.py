"""What an SDK's calls take at a door of the service beyond what the SDK itself costs, told in H.

The SDK's own cost is measured against a server that says the same words and does nothing. H is the least that a
Python program on this host must do to run a command.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bench.convention import Row, interleaved
from bench.host.baseline import TRUE, capture

H = "H: spawn and capture in Python, beyond the SDK against canned answers"
THINKS_S = 0.003
"""An agent thinks longer than the next shell takes to start."""

POOL_REST_S = 0.05
"""Between creations, so that the pool has one ready: that is what is measured."""

Box = TypeVar("Box")


@dataclass(frozen=True)
class Server:
    """One to talk to."""

    url: str
    token: str


class Sdk(Protocol[Box]):
    """One SDK, as it is used here."""

    @property
    def name(self) -> str: ...
    def create(self) -> Box: ...
    def true(self, box: Box) -> object: ...
    def end(self, box: Box) -> object: ...


@contextmanager
def server(*module: str) -> Iterator[Server]:
    """`python -m` these words, for as long as the block runs."""
    argv = [sys.executable, "-m", *module]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url, token = child.stdout.readline().split()
        yield Server(url, token)
        child.communicate()


def true(door: Sdk[Box], canned: Sdk[Box], rounds: int = 300) -> Row:
    """One command in a sandbox that is there."""
    ours, theirs = door.create(), canned.create()
    for _ in range(20):
        door.true(ours)
        time.sleep(0.02)

    def thoughtful(sdk: Sdk[Box], box: Box) -> int:
        time.sleep(THINKS_S)
        start = time.perf_counter_ns()
        sdk.true(box)
        return time.perf_counter_ns() - start

    row = _beyond(
        f"`true` through the {door.name} SDK",
        lambda: thoughtful(door, ours),
        lambda: thoughtful(canned, theirs),
        (1.6, 1.3),
        rounds=rounds,
    )
    door.end(ours)
    return row


def first_command(door: Sdk[Box], canned: Sdk[Box], rounds: int = 60) -> Row:
    """A sandbox, and one command in it."""

    def once(sdk: Sdk[Box]) -> int:
        time.sleep(POOL_REST_S)
        start = time.perf_counter_ns()
        box = sdk.create()
        sdk.true(box)
        spent = time.perf_counter_ns() - start
        sdk.end(box)
        return spent

    name = f"create to first command through the {door.name} SDK, pool hit"
    return _beyond(
        name, lambda: once(door), lambda: once(canned), (6, 4), rounds=rounds, warm_ups=10
    )


def _beyond(
    name: str,
    door: Callable[[], int],
    canned: Callable[[], int],
    bounds: tuple[float, float],
    *,
    rounds: int,
    warm_ups: int = 3,
) -> Row:
    taken = interleaved(
        {"H": lambda: capture(TRUE), "door": door, "canned": canned},
        rounds=rounds,
        warm_ups=warm_ups,
    )
    h, ours, theirs = (taken[each] for each in ("H", "door", "canned"))
    value = (ours.p50_us - theirs.p50_us) / h.p50_us
    told = f"H {h.p50_us:.0f} us, SDK {theirs.p50_us:.0f}, door {ours.p50_us:.0f}"
    print(f"# {name}: {told}", file=sys.stderr)
    return Row(name, value, H, *bounds, len(ours.times_us), ours.p50_us, ours.p95_us)
