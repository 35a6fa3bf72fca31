"""A real service in this process, on a free port, before a substrate of the test's choice."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from excise.errors import SandboxGone
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.service.cloud import Cloud
from excise.service.doors import Desk, Door
from excise.service.keys import Ring, new_key
from excise.service.policy import Policy
from excise.service.sandbox import State
from excise.service.serve import serving
from excise.substrates.base import Availability, Substrate
from excise.substrates.fake import Fake
from excise.substrates.local import Local
from excise.substrates.registry import availability

T = TypeVar("T")


@dataclass
class Served:
    """What a test needs of a service that runs."""

    desk: Desk
    url: str
    cloud: Cloud
    token: str
    """Of alice."""
    other: str
    """Of bob, who must not see what is alice's."""


_JAILS: list[Availability] = []
Serve = Callable[..., AbstractAsyncContextManager[Served]]


async def need_jail() -> None:
    """Skip where there are no jails, unless the environment says that there must be."""
    if not _JAILS:
        _JAILS.append(await availability("jail"))
    if _JAILS[0].usable:
        return
    if "jail" in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(_JAILS[0].reason, pytrace=False)
    pytest.skip(_JAILS[0].reason)


def doors() -> list[Door]:
    """All there are; the native one last: what nobody owns is its."""
    from excise.service.all_doors import all_doors

    return all_doors()


def substrate_of(kind: str, folder: Path) -> Substrate:
    if kind == "fake":
        return Fake()
    if kind == "local":
        return Local(folder / "local")
    from excise.jail.substrate import Jail

    jail = Jail(leases=folder / "leases")
    return jail if kind == "jail" else pooled(jail, Rules(budget=Budget(sandboxes=16)))


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """`async with serve("jail+pool") as served:`, or "jail", "local", "fake", or a substrate of one's own; `more` is for `serving`."""

    @asynccontextmanager
    async def start(
        kind: str | Substrate = "fake", policy: Policy | None = None, **more: Any
    ) -> AsyncIterator[Served]:
        if isinstance(kind, str) and kind.startswith("jail"):
            await need_jail()
        substrate = substrate_of(kind, tmp_path) if isinstance(kind, str) else kind
        cloud = Cloud(substrate, tmp_path / "state", policy=policy)
        alice, token = new_key("alice", time.time())
        bob, other = new_key("bob", time.time())
        async with serving(cloud, doors(), Ring([alice, bob]), **more) as desk:
            yield Served(desk, desk.url, cloud, token, other)

    return start


@dataclass
class E2BClient:
    """What the unmodified `e2b` SDK has to be told to come here: `Sandbox.create(**client.alice)`."""

    served: Served
    loop: asyncio.AbstractEventLoop

    @property
    def alice(self) -> dict[str, str]:
        return self._of(self.served.token)

    @property
    def bob(self) -> dict[str, str]:
        return self._of(self.served.other)

    def reaches(self, id_: str, state: State) -> None:
        """Wait until that sandbox is in that state."""
        sandbox = self.served.cloud.find("alice", id_)

        async def until() -> None:
            async with asyncio.timeout(20):
                while sandbox.state is not state:  # noqa: ASYNC110  # the reaper tells nobody
                    await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(until(), self.loop).result()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of this on the service's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def until(self, true: Callable[[], bool]) -> None:
        """Ask again and again."""
        deadline = time.monotonic() + 20
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def gone(self, id_: str) -> None:
        """Wait until that sandbox has ended."""
        try:
            self.reaches(id_, State.ENDED)
        except SandboxGone:
            return

    def _of(self, token: str) -> dict[str, str]:
        url = self.served.url
        return {"api_url": url, "sandbox_url": url, "api_key": token}


@pytest.fixture
def e2b_client(serve: Serve) -> Callable[..., None]:
    """`e2b_client(script)`: run a blocking script, that is given an `E2BClient`, beside a service."""

    def run(
        script: Callable[[E2BClient], object],
        kind: str | Substrate = "jail+pool",
        policy: Policy | None = None,
    ) -> None:
        async def work() -> None:
            async with serve(kind, policy) as served:
                client = E2BClient(served, asyncio.get_running_loop())
                await asyncio.to_thread(script, client)

        asyncio.run(work())

    return run


MAIN = "from excise.cli import main; raise SystemExit(main())"


class Daemon:
    """One `excise serve`."""

    def __init__(self, folder: Path, *words: str, env: Mapping[str, str]) -> None:
        self.folder = folder
        command = [
            sys.executable,
            "-c",
            MAIN,
            "serve",
            "--port",
            "0",
            "--state",
            str(folder),
            *words,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(folder.parent), **env},
        )  # fmt: skip
        self.said: list[str] = []
        self.errors: list[str] = []
        self._reading = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self._reading.start()
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("# ready"):
                break
        else:
            self.process.wait()
            self._reading.join()
            self.close()
            raise AssertionError("".join(self.errors))
        self.url = re.search(r"EXCISE_URL=(\S+)", "".join(self.said))[1]
        self.token = re.search(r"EXCISE_API_KEY=(\S+)", "".join(self.said))[1]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reading.join()
        self.close()
        return code

    def close(self) -> None:
        self.process.stdout.close()
        self.process.stderr.close()


Start = Callable[..., Daemon]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Daemon] = []

    def begin(*words: str, env: Mapping[str, str] = {}) -> Daemon:
        running.append(Daemon(tmp_path / "state", *words, env=env))
        return running[-1]

    yield begin
    for daemon in running:
        if daemon.process.poll() is None:
            daemon.end(signal.SIGKILL)
        daemon.close()


@pytest.fixture(scope="session")
def jail() -> None:
    asyncio.run(need_jail())
