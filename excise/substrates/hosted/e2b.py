"""E2B through its official SDK: `E2B_API_KEY`, and for a service of one's own `E2B_API_URL` and `E2B_SANDBOX_URL`."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.hosted.cloud import Ran
from excise.substrates.hosted.faults import Told
from excise.substrates.hosted.options import Options, stated
from excise.types import Egress, Isolation, Spec

if TYPE_CHECKING:
    from e2b import AsyncCommandHandle, AsyncSandbox

    from excise.substrates.hosted.substrate import Hosted

NAME = "e2b"
KNOWN = ("on", "image", "user", "workspace", "lifetime_s", "create_s", "host")
BASE = "base"


def open_substrate(**given: str) -> Hosted:
    """`image=`: a template; `on=loopback`: a service on this machine; `user=`, `workspace=`, `lifetime_s=`, `host=`."""
    from excise.substrates.hosted.substrate import Hosted

    options = Options.of(NAME, given, KNOWN)
    stated(NAME, options, url())
    import e2b as _  # noqa: F401  # missing is told now, and not at the first sandbox

    isolation = Isolation.CONTAINER if options.on else Isolation.VM
    return Hosted(NAME, options, isolation, lambda: E2B(options))


async def availability(**given: str) -> Availability:
    """Whether there is a key and the control plane takes it."""
    from excise.substrates.hosted.available import look

    return await look(NAME, "E2B_API_KEY", lambda: open_substrate(**given))


def url() -> str:
    """The control plane that the SDK will speak to."""
    domain = os.environ.get("E2B_DOMAIN") or "e2b.app"
    return os.environ.get("E2B_API_URL") or f"https://api.{domain}"


class E2B:
    """The SDK's asynchronous half."""

    one_stream = False

    def __init__(self, options: Options) -> None:
        if not os.environ.get("E2B_API_KEY"):
            raise InputError(f"{NAME} wants a key: export E2B_API_KEY")
        self._options = options
        self._known: dict[str, AsyncSandbox] = {}

    async def make(self, image: str | None, spec: Spec, labels: Mapping[str, str]) -> str:
        from e2b import AsyncSandbox

        made = await AsyncSandbox.create(
            template=image or BASE,
            timeout=round(self._options.lifetime_s),
            metadata=dict(labels),
            envs=dict(spec.env),
            allow_internet_access=spec.egress is not Egress.NONE,
            retries=0,
            request_timeout=self._options.create_s,
        )
        self._known[made.sandbox_id] = made
        return made.sandbox_id

    async def start(self, box: str, line: str, user: str | None) -> Started:
        sandbox = await self._sandbox(box)
        handle = await sandbox.commands.run(line, background=True, user=user, timeout=0)
        return Started(handle)

    async def put(self, box: str, path: str, data: bytes) -> None:
        await (await self._sandbox(box)).files.write(path, data, user=self._options.user)

    async def get(self, box: str, path: str) -> bytes:
        from e2b import FileNotFoundException

        sandbox = await self._sandbox(box)
        try:
            return bytes(await sandbox.files.read(path, format="bytes", user=self._options.user))
        except FileNotFoundException as error:
            raise FileNotFoundError(path) from error

    async def end(self, box: str) -> None:
        from e2b import AsyncSandbox

        self._known.pop(box, None)
        await AsyncSandbox.kill(box, retries=0)

    async def listed(self, label: str) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        from e2b import AsyncSandbox, SandboxQuery

        pages = AsyncSandbox.list(query=SandboxQuery(metadata={label: "1"}))
        while pages.has_next:
            for found in await pages.next_items():
                yield found.sandbox_id, found.metadata

    def told(self, error: Exception) -> Told | None:
        module = type(error).__module__.partition(".")[0]
        if module not in {"e2b", "httpx", "pyqwest"}:
            return None
        return Told(type(error).__name__, str(error), getattr(error, "status_code", None))

    def facts(self) -> dict[str, str]:
        return {"sdk": f"e2b {importlib.metadata.version('e2b')}", "api": url()}

    async def close(self) -> None:
        self._known.clear()

    async def _sandbox(self, box: str) -> AsyncSandbox:
        known = self._known.get(box)
        if known is None:
            from e2b import AsyncSandbox

            known = self._known[box] = await AsyncSandbox.connect(box, retries=0)
        return known


class Started:
    """One command; its output is read by the SDK meanwhile."""

    def __init__(self, handle: AsyncCommandHandle) -> None:
        self._handle = handle

    async def wait(self) -> Ran:
        from e2b import CommandExitException

        try:
            found: Any = await self._handle.wait()
        except CommandExitException as ended:
            found = ended
        return Ran(found.exit_code, found.stdout, found.stderr)

    def heard(self) -> Ran:
        return Ran(0, self._handle.stdout, self._handle.stderr)
