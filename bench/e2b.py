"""The E2B door as the unmodified SDK sees it: what is the service's beyond what the SDK itself costs.

The SDK runs `bash -l -c` for every command, and that is what is run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.convention import Row, Sample
from bench.host import sdk
from bench.host.rivals import GET, docker_runs
from bench.host.sdk import Server, server

BURSTS = (100, 500)


class Client:
    """The SDK's own, blocking one."""

    name = "e2b"

    def __init__(self, at: Server) -> None:
        from e2b import Sandbox

        self._sdk: Any = Sandbox
        self._options = {"api_url": at.url, "sandbox_url": at.url, "api_key": at.token}

    def create(self) -> Any:
        return self._sdk.create(**self._options)

    def true(self, box: Any) -> object:
        return box.commands.run("true")

    def end(self, box: Any) -> object:
        return box.kill()


def rows() -> Iterator[Row]:
    module = "bench.host.e2b_server"
    with server(module, "door") as at, server(module, "canned") as words:
        door, canned = Client(at), Client(words)
        yield sdk.true(door, canned)
        yield sdk.first_command(door, canned)
        yield from _bursts(door)


def _bursts(door: Client) -> Iterator[Row]:
    for size in BURSTS:

        def made(_number: int) -> tuple[Any, float]:
            start = time.perf_counter_ns()
            try:
                box: Any = door.create()
            except Exception as error:  # noqa: BLE001  # counted
                box = error
            return box, (time.perf_counter_ns() - start) / 1000

        with ThreadPoolExecutor(size) as pool:
            start = time.perf_counter_ns()
            found = list(pool.map(made, range(size)))
            wall_us = (time.perf_counter_ns() - start) / 1000
            failed = [box for box, _ in found if isinstance(box, Exception)]
            boxes = [box for box, _ in found if not isinstance(box, Exception)]
            list(pool.map(door.end, boxes))
        sample = Sample(tuple(us for _, us in found))
        name = f"burst of {size} creates through the e2b SDK"
        figures = (size, sample.p50_us, sample.p95_us)
        yield Row(f"{name}: failures", len(failed), "none", 0, 0, *figures)
        if size == BURSTS[0]:
            yield from _against_docker(f"{name}: wall", size, wall_us)


def _against_docker(name: str, size: int, wall_us: float) -> Iterator[Row]:
    theirs_us = docker_runs(size)
    if theirs_us is None:
        print(f"# no docker to compare with: {GET}", file=sys.stderr)
        return
    baseline = f"{size} `docker run` at once"
    yield Row(name, wall_us / theirs_us, baseline, 1 / 20, 1 / 50, 1, wall_us, wall_us)
