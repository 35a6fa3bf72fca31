"""The Daytona door as the unmodified SDK and Harbor see it: what is the service's beyond what the SDK itself costs.

A trial of Harbor is told as a share of the second that its provider sleeps between two looks at a command.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.convention import Row, Sample
from bench.host import sdk
from bench.host.sdk import Server, server

SLEEP = "the second that the provider sleeps between two looks"
TRIALS = 7


class Client:
    """The SDK's own, blocking one."""

    name = "daytona"

    def __init__(self, at: Server) -> None:
        from daytona import Daytona, DaytonaConfig

        self._sdk: Any = Daytona(
            DaytonaConfig(api_key=at.token, api_url=f"{at.url}/api", target="local")
        )

    def create(self) -> Any:
        return self._sdk.create()

    def true(self, box: Any) -> object:
        return box.process.exec("true")

    def end(self, box: Any) -> object:
        return box.delete()


def rows() -> Iterator[Row]:
    with (
        server("bench.host.e2b_server", "door") as at,
        server("bench.host.daytona_canned") as words,
    ):
        door, canned = Client(at), Client(words)
        yield sdk.true(door, canned)
        yield sdk.first_command(door, canned)
        yield from _harbor(at)


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
