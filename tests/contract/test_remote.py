"""The remote substrate against the contract, over loopback HTTP, before jails and their pool in a service's own thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from excise.jail.substrate import Jail
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.service.cloud import Cloud
from excise.service.keys import Ring, new_key
from excise.service.native.door import Native
from excise.service.serve import serving
from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.local import Local
from excise.substrates.remote import connect


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
        async with serving(Cloud(substrate, folder), [Native()], Ring([self.key])) as desk:
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


@pytest.mark.usefixtures("jail", "service")
class TestRemoteJail(Conformance):
    service: ClassVar[Service]

    @staticmethod
    def served(folder: Path) -> Substrate:
        return pooled(Jail(leases=folder / "leases"), Rules(budget=Budget(sandboxes=12)))

    def substrate(self) -> Substrate:
        return connect(self.service.url, self.service.token)


@pytest.mark.usefixtures("service")
class TestRemoteLocal(Conformance):
    """Without streams, terminals or operations on files: the fallbacks of the service."""

    service: ClassVar[Service]
    deviations: ClassVar = {
        "out_of_each_others_reach": "a bare process sees the whole host: it isolates nothing"
    }

    @staticmethod
    def served(folder: Path) -> Substrate:
        return Local(folder / "local")

    def substrate(self) -> Substrate:
        return connect(self.service.url, self.service.token)
