"""The connection to a container engine: every call has a deadline, and every failure a phase.

aiodocker speaks the API; this translates its errors once, and counts what the engine's event stream says
about memory, which no call would tell.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiodocker
import aiohttp

from excise.errors import (
    DeadlineExceeded,
    InputError,
    Phase,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)
from excise.substrates.container.config import Abilities, Options

CALL_DEADLINE_S = 60.0
TRANSFER_DEADLINE_S = 600.0
PODMAN_SOCKET = "unix:///run/podman/podman.sock"
UNREACHABLE = 900
"""aiodocker's status for an engine that does not answer at all."""

_GONE = ("no such container", "is not running", "no such exec", "on running containers")
"""How Docker, and after it podman, say that there is nothing (any more) to act upon."""


def address_of(options: Options) -> str | None:
    """Where the engine listens; None leaves the search for Docker's to aiodocker, contexts included."""
    if options.host is not None or options.engine == "docker":
        return options.host
    of_user = f"unix://{os.environ.get('XDG_RUNTIME_DIR', '/run')}/podman/podman.sock"
    return os.environ.get("CONTAINER_HOST") or (PODMAN_SOCKET if os.geteuid() == 0 else of_user)


class Engine:
    """One engine, connected to on first use; good for one event loop at a time."""

    def __init__(self, substrate: str, host: str | None, owner: str) -> None:
        self.substrate = substrate
        self.host = host
        self.owner = owner
        self.ooms: Counter[str] = Counter()
        self._client: aiodocker.Docker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: asyncio.Task[None] | None = None
        self._abilities: Abilities | None = None

    @asynccontextmanager
    async def asking(
        self, phase: Phase, deadline_s: float = CALL_DEADLINE_S
    ) -> AsyncIterator[aiodocker.Docker]:
        """The client, within a deadline; what fails in here is raised as this substrate's error."""
        try:
            async with asyncio.timeout(deadline_s):
                yield self._connected(phase)
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"the engine did not answer within {deadline_s:g} s",
                substrate=self.substrate,
                phase=phase,
                retryable=True,
            ) from error
        except aiodocker.DockerError as error:
            raise self._translated(error, phase) from error
        except (aiohttp.ClientError, ConnectionError, aiohttp.EofStream) as error:
            raise self.broken(f"the connection broke: {error!r}", phase, retryable=True) from error

    def broken(self, message: str, phase: Phase, *, retryable: bool = False) -> SubstrateError:
        return SubstrateError(message, substrate=self.substrate, phase=phase, retryable=retryable)

    async def abilities(self) -> Abilities:
        """Asked once: they do not change while an engine runs."""
        if self._abilities is None:
            async with self.asking(Phase.CREATE) as client:
                info = await client.system.info()
                networks = await client.networks.list()
            backing = dict(info.get("DriverStatus") or ()).get("Backing Filesystem", "")
            drivers = {network["Name"]: network.get("Driver", "") for network in networks}
            self._abilities = Abilities(info.get("Driver", ""), backing, drivers)
        return self._abilities

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        if self._events is not None:
            self._events.cancel()
            await asyncio.gather(self._events, return_exceptions=True)
        try:
            await client.close()
        except (aiodocker.DockerError, aiohttp.ClientError):  # what its reader of events ended with
            await client.session.close()

    def _connected(self, phase: Phase) -> aiodocker.Docker:
        loop = asyncio.get_running_loop()
        if self._client is not None and self._loop is loop:
            return self._client
        try:
            client = aiodocker.Docker(url=self.host)
        except AssertionError as error:  # how aiodocker says that it found no engine
            raise SubstrateUnavailable(
                "there is no engine's socket on this host and DOCKER_HOST is not set",
                substrate=self.substrate,
                phase=phase,
            ) from error
        except (ValueError, aiodocker.DockerError) as error:
            raise InputError(f"{self.substrate}: not an engine's address: {error}") from error
        if client.connector is not None:
            client.connector._limit = 0  # noqa: SLF001  # 100 would queue a burst of sandboxes in here
        self._client, self._loop = client, loop
        self._events = loop.create_task(self._count_ooms(client))
        return client

    async def _count_ooms(self, client: aiodocker.Docker) -> None:
        filters = json.dumps({"label": [f"excise.owner={self.owner}"], "event": ["oom"]})
        events = client.events.subscribe(filters=filters)  # type: ignore[no-untyped-call]
        with contextlib.suppress(aiodocker.DockerError, aiohttp.ClientError):
            while (event := await events.get()) is not None:
                self.ooms[_name_in(event)] += 1

    def _translated(self, error: aiodocker.DockerError, phase: Phase) -> SubstrateError:
        text = error.message
        if error.status == UNREACHABLE:
            return SubstrateUnavailable(text, substrate=self.substrate, phase=phase)
        if any(sign in text.lower() for sign in _GONE):
            return SandboxGone(text, substrate=self.substrate, phase=phase)
        retryable = error.status in {429, 500, 503}
        return self.broken(f"{text} (status {error.status})", phase, retryable=retryable)


def _name_in(event: dict[str, Any]) -> str:
    return str(event.get("Actor", {}).get("Attributes", {}).get("name", ""))
