"""What is required must be there: EXCISE_REQUIRE=docker turns a skipped substrate into a failure."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.service.all_doors import all_doors
from excise.service.cloud import Cloud
from excise.service.keys import Ring, new_key
from excise.service.serve import serving
from excise.substrates.base import Substrate
from excise.substrates.registry import availability


def need(name: str, **options: str) -> None:
    """Skip where the substrate cannot be used, unless the environment says that it must be."""
    found = asyncio.run(availability(name, **options))
    if found.usable:
        return
    text = f"{name}: {found.reason} ({found.remedy})"
    real = "harnesses" if "@" in name else name.partition("+")[0].partition("-")[0]
    if real in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def docker() -> None:
    need("docker")


@pytest.fixture(scope="session")
def podman() -> None:
    need("podman")


@pytest.fixture(scope="session")
def jail() -> None:
    need("jail")


@pytest.fixture(scope="session")
def gvisor() -> None:
    need("gvisor")


@pytest.fixture(scope="session")
def bwrap() -> None:
    need("bwrap")


@pytest.fixture(scope="session")
def kubernetes() -> None:
    need("kubernetes")


@pytest.fixture(scope="session")
def vm_uml() -> None:
    need("vm-uml")


class Service:
    """A service with an event loop and a thread of its own, as a client in this process sees another process."""

    def __init__(self, substrate: Substrate, folder: Path) -> None:
        self.key, self.token = new_key("alice", time.time())
        self.url = ""
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(substrate, folder)))
        self._thread.start()
        self._up.wait(30)

    async def _serve(self, substrate: Substrate, folder: Path) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with serving(Cloud(substrate, folder), all_doors(), Ring([self.key])) as desk:
            self.url = desk.url
            self._up.set()
            await self._end.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)


@pytest.fixture(scope="class")
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("service")
    request.cls.service = Service(request.cls.served(folder), folder)
    yield
    request.cls.service.close()


@pytest.fixture(scope="session")
def vm() -> None:
    need("vm")
