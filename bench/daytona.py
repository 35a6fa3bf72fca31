"""The Daytona door as the unmodified SDK and Harbor see it: what is the service's beyond what the SDK itself costs.

The SDK's own cost is measured against a server that says the same words and does nothing; what the door takes
beyond that is told in H, the least that a Python program on this host must do to run a command. A trial of Harbor
is told as a share of the second that its provider sleeps between two looks at a command.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.convention import Row, Sample, interleaved
from bench.host.baseline import TRUE, capture

H = "H: spawn and capture in Python, beyond the SDK against canned answers"
SLEEP = "the second that the provider sleeps between two looks"
POOL_REST_S = 0.05
"""Between creations, so that the pool has one ready: that is what is measured."""

TRIALS = 7
SERVERS = {"door": ("bench.host.e2b_server", "door"), "canned": ("bench.host.daytona_canned",)}


@dataclass(frozen=True)
class Server:
    """One to talk to."""

    url: str
    token: str

    def client(self) -> Any:
        """The SDK's own, blocking one."""
        from daytona import Daytona, DaytonaConfig

        return Daytona(DaytonaConfig(api_key=self.token, api_url=f"{self.url}/api", target="local"))


@contextmanager
def server(kind: str) -> Iterator[Server]:
    """`door` or `canned`, for as long as the block runs."""
    argv = [sys.executable, "-m", *SERVERS[kind]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url, token = child.stdout.readline().split()
        yield Server(url, token)
        child.communicate()


def rows() -> Iterator[Row]:
    with server("door") as door, server("canned") as canned:
        yield _true(door, canned)
        yield _first_command(door, canned)
        yield from _harbor(door)


def _true(door: Server, canned: Server, rounds: int = 300) -> Row:
    ours, theirs = door.client().create(), canned.client().create()
    for _ in range(20):
        ours.process.exec("true")

    def thoughtful(box: Any) -> int:
        time.sleep(0.003)  # an agent thinks longer than the next shell takes to start
        start = time.perf_counter_ns()
        box.process.exec("true")
        return time.perf_counter_ns() - start

    taken = interleaved(
        {
            "H": lambda: capture(TRUE),
            "door": lambda: thoughtful(ours),
            "canned": lambda: thoughtful(theirs),
        },
        rounds=rounds,
    )
    ours.delete()
    return _beyond("`true` through the daytona SDK", taken, 1.6, 1.3)


def _first_command(door: Server, canned: Server, rounds: int = 60) -> Row:
    clients = {"door": door.client(), "canned": canned.client()}

    def once(kind: str) -> int:
        time.sleep(POOL_REST_S)
        start = time.perf_counter_ns()
        box = clients[kind].create()
        box.process.exec("true")
        spent = time.perf_counter_ns() - start
        box.delete()
        return spent

    taken = interleaved(
        {
            "H": lambda: capture(TRUE),
            "door": lambda: once("door"),
            "canned": lambda: once("canned"),
        },
        rounds=rounds,
        warm_ups=10,
    )
    return _beyond("create to first command through the daytona SDK, pool hit", taken, 6, 4)


def _beyond(name: str, taken: dict[str, Sample], reach: float, aim: float) -> Row:
    h, door, canned = (taken[each] for each in ("H", "door", "canned"))
    value = (door.p50_us - canned.p50_us) / h.p50_us
    print(
        f"# {name}: H {h.p50_us:.0f} us, SDK {canned.p50_us:.0f}, door {door.p50_us:.0f}",
        file=sys.stderr,
    )
    return Row(name, value, H, reach, aim, len(door.times_us), door.p50_us, door.p95_us)


def _harbor(door: Server) -> Iterator[Row]:
    """A trial of the oracle agent, from its start to its end as Harbor wrote it down."""
    from tests.service.harbor import NO_PYTHON, newer_python, oracle, write_task

    if newer_python() is None:
        print(f"# {NO_PYTHON}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        task, out = write_task(Path(folder, "task")), Path(folder, "jobs")
        env = {"DAYTONA_API_URL": f"{door.url}/api", "DAYTONA_API_KEY": door.token}
        trials = asyncio.run(oracle("daytona", task, out, env, trials=TRIALS))
    assert all(trial.reward == 1.0 for trial in trials), trials
    sample = Sample(tuple(trial.seconds * 1e6 for trial in trials))
    value = statistics.median(sample.times_us) / 1e6
    name = "Harbor's oracle trial through its Daytona provider"
    yield Row(name, value, SLEEP, 0.6, 0.3, len(trials), sample.p50_us, sample.p95_us)
