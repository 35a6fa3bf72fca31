"""The E2B door as the unmodified SDK sees it: what is the service's beyond what the SDK itself costs.

The SDK's own cost is measured against a server that says the same words and does nothing; what the door takes
beyond that is told in H, the least that a Python program on this host must do to run a command. The SDK runs
`bash -l -c` for every command, and that is what is run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.convention import Row, Sample, interleaved
from bench.host.baseline import TRUE, capture

H = "H: spawn and capture in Python, beyond the SDK against canned answers"
POOL_REST_S = 0.05
"""Between creations, so that the pool has one ready: that is what is measured."""


@dataclass(frozen=True)
class Server:
    """One to talk to."""

    url: str
    token: str

    @property
    def options(self) -> dict[str, Any]:
        """For every call of the SDK's."""
        return {"api_url": self.url, "sandbox_url": self.url, "api_key": self.token}


@contextmanager
def server(kind: str) -> Iterator[Server]:
    """`door` or `canned`, for as long as the block runs."""
    argv = [sys.executable, "-m", "bench.host.e2b_server", kind]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url, token = child.stdout.readline().split()
        yield Server(url, token)
        child.communicate()


def rows() -> Iterator[Row]:
    with server("door") as door, server("canned") as canned:
        yield _true(door, canned)
        yield _first_command(door, canned)
        yield from _bursts(door)


def _true(door: Server, canned: Server, rounds: int = 300) -> Row:
    from e2b import Sandbox

    ours, theirs = Sandbox.create(**door.options), Sandbox.create(**canned.options)
    for _ in range(20):
        ours.commands.run("true")
        time.sleep(0.02)

    def thoughtful(box: Any) -> int:
        time.sleep(0.003)  # an agent thinks longer than the next shell takes to start
        start = time.perf_counter_ns()
        box.commands.run("true")
        return time.perf_counter_ns() - start

    taken = interleaved(
        {
            "H": lambda: capture(TRUE),
            "door": lambda: thoughtful(ours),
            "canned": lambda: thoughtful(theirs),
        },
        rounds=rounds,
    )
    ours.kill()
    return _beyond("`true` through the e2b SDK", taken, 1.6, 1.3)


def _first_command(door: Server, canned: Server, rounds: int = 60) -> Row:
    from e2b import Sandbox

    def once(options: dict[str, Any]) -> int:
        time.sleep(POOL_REST_S)
        start = time.perf_counter_ns()
        box = Sandbox.create(**options)
        box.commands.run("true")
        spent = time.perf_counter_ns() - start
        box.kill()
        return spent

    taken = interleaved(
        {
            "H": lambda: capture(TRUE),
            "door": lambda: once(door.options),
            "canned": lambda: once(canned.options),
        },
        rounds=rounds,
        warm_ups=10,
    )
    return _beyond("create to first command through the e2b SDK, pool hit", taken, 6, 4)


def _beyond(name: str, taken: dict[str, Sample], reach: float, aim: float) -> Row:
    h, door, canned = (taken[each] for each in ("H", "door", "canned"))
    value = (door.p50_us - canned.p50_us) / h.p50_us
    print(
        f"# {name}: H {h.p50_us:.0f} us, SDK {canned.p50_us:.0f}, door {door.p50_us:.0f}",
        file=sys.stderr,
    )
    return Row(name, value, H, reach, aim, len(door.times_us), door.p50_us, door.p95_us)


def _bursts(door: Server) -> Iterator[Row]:
    from e2b import Sandbox

    for size in (100, 500):

        def made(_number: int) -> tuple[Any, float]:
            start = time.perf_counter_ns()
            try:
                box: Any = Sandbox.create(**door.options)
            except Exception as error:  # noqa: BLE001  # counted
                box = error
            return box, (time.perf_counter_ns() - start) / 1000

        with ThreadPoolExecutor(size) as pool:
            found = list(pool.map(made, range(size)))
            failed = [box for box, _ in found if isinstance(box, Exception)]
            boxes = [box for box, _ in found if not isinstance(box, Exception)]
            list(pool.map(lambda box: box.kill(), boxes))
        sample = Sample(tuple(us for _, us in found))
        name = f"burst of {size} creates through the e2b SDK: failures"
        yield Row(name, len(failed), "none", 0, 0, size, sample.p50_us, sample.p95_us)
