"""Daytona through its official SDK: `DAYTONA_API_KEY`, `DAYTONA_TARGET`, and `DAYTONA_API_URL` for a service of one's own."""

from __future__ import annotations

import asyncio
import importlib.metadata
import math
import os
import shlex
import warnings
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.hosted.cloud import Ran
from excise.substrates.hosted.faults import Told
from excise.substrates.hosted.options import Options, stated
from excise.substrates.remote import LOOPBACK
from excise.types import Egress, Isolation, Spec

if TYPE_CHECKING:
    from daytona import AsyncSandbox

    from excise.substrates.hosted.substrate import Hosted

NAME = "daytona"
KNOWN = ("on", "image", "region", "user", "workspace", "lifetime_s", "create_s", "host")
CLOUD = "https://app.daytona.io/api"


def open_substrate(**given: str) -> Hosted:
    """`image=`: a snapshot; `region=`; `on=loopback`: a service on this machine; `user=`, `workspace=`, `lifetime_s=`, `host=`."""
    from excise.substrates.hosted.substrate import Hosted

    options = Options.of(NAME, given, KNOWN)
    stated(NAME, options, url())
    import daytona as _  # noqa: F401  # missing is told now, and not at the first sandbox

    return Hosted(NAME, options, Isolation.CONTAINER, lambda: Daytona(options))


async def availability(**given: str) -> Availability:
    """Whether there is a key and the control plane takes it."""
    from excise.substrates.hosted.available import look

    return await look(NAME, "DAYTONA_API_KEY", lambda: open_substrate(**given))


def url() -> str:
    """The control plane that the SDK will speak to."""
    return os.environ.get("DAYTONA_API_URL") or CLOUD


class Daytona:
    """The SDK's asynchronous half."""

    one_stream = True

    def __init__(self, options: Options) -> None:
        from daytona import AsyncDaytona, DaytonaConfig

        if not os.environ.get("DAYTONA_API_KEY"):
            raise InputError(f"{NAME} wants a key: export DAYTONA_API_KEY")
        self._options = options
        alone = True if options.on == LOOPBACK else None  # our service has no event channel to try
        config = DaytonaConfig(api_url=url(), target=options.region, use_deprecated_polling=alone)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._client = AsyncDaytona(config)
        self._known: dict[str, AsyncSandbox] = {}

    async def make(self, image: str | None, spec: Spec, labels: Mapping[str, str]) -> str:
        from daytona import CreateSandboxFromSnapshotParams

        minutes = math.ceil(self._options.lifetime_s / 60)
        asked = CreateSandboxFromSnapshotParams(
            snapshot=image,
            os_user=self._options.user,
            env_vars=dict(spec.env),
            labels=dict(labels),
            network_block_all=spec.egress is Egress.NONE,
            auto_stop_interval=minutes,
            auto_delete_interval=0,
            ttl_minutes=minutes,
        )
        made = await self._client.create(asked, timeout=self._options.create_s)
        self._known[made.id] = made
        return made.id

    async def start(self, box: str, line: str, user: str | None) -> Started:
        """It has one user for all commands, chosen when it is made."""
        if user not in {None, self._options.user}:
            raise InputError(
                f"{NAME} runs all commands of a sandbox as one user: {NAME}:user={user}"
            )
        script = f"exec bash -c {shlex.quote(line)}"  # whichever shell its own snapshots have
        return Started(await self._sandbox(box), script)

    async def put(self, box: str, path: str, data: bytes) -> None:
        await (await self._sandbox(box)).fs.upload_file(data, path)

    async def get(self, box: str, path: str) -> bytes:
        from daytona import DaytonaNotFoundError

        sandbox = await self._sandbox(box)
        try:
            return await sandbox.fs.download_file(path)
        except DaytonaNotFoundError as error:
            if "sandbox" in (error.code or "").lower():
                raise
            raise FileNotFoundError(path) from error

    async def end(self, box: str) -> None:
        """Waits for it: what is deleted later is not gone yet."""
        sandbox = await self._sandbox(box)
        self._known.pop(box, None)
        await sandbox.delete(wait=True)

    async def listed(self, label: str) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        from daytona import ListSandboxesQuery

        async for found in self._client.list(ListSandboxesQuery(labels={label: "1"})):
            yield found.id, found.labels

    def told(self, error: Exception) -> Told | None:
        from daytona import DaytonaError

        if isinstance(error, DaytonaError):
            headers = {str(k): str(v) for k, v in error.headers.items()}
            return Told(type(error).__name__, error.message, error.status_code, headers)
        if type(error).__module__.partition(".")[0] in {"aiohttp", "httpx"}:
            return Told(type(error).__name__, str(error))
        return None

    def facts(self) -> dict[str, str]:
        where = {} if self._options.region is None else {"region": self._options.region}
        return {"sdk": f"daytona {importlib.metadata.version('daytona')}", "api": url(), **where}

    async def close(self) -> None:
        self._known.clear()
        await self._client.close()  # type: ignore[no-untyped-call]

    async def _sandbox(self, box: str) -> AsyncSandbox:
        known = self._known.get(box)
        if known is None:
            known = self._known[box] = await self._client.get(box)
        return known


class Started:
    """One command, which is one request: what it says is known when it has ended, and not before."""

    def __init__(self, sandbox: AsyncSandbox, line: str) -> None:
        self._ending = asyncio.ensure_future(sandbox.process.exec(line))

    async def wait(self) -> Ran:
        try:
            found = await self._ending
        finally:
            self._ending.cancel()
        return Ran(int(found.exit_code), found.result)

    def heard(self) -> Ran:
        return Ran(0, "")
