"""The connection to a cluster's API server: every call has a deadline, and every failure a phase.

kubernetes_asyncio reads the kubeconfig, signs in and keeps tokens fresh; requests are plain JSON over its session,
because building its objects of every answer takes longer than the answer does.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, kube_config, load_incluster_config
from yarl import URL

from excise.errors import (
    DeadlineExceeded,
    InputError,
    Phase,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)
from excise.substrates.kubernetes import channels
from excise.substrates.kubernetes.options import Options

CALL_DEADLINE_S = 30.0
NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Refused(Exception):
    """The API server's own answer that it does not do this."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason


class NotRunning(SubstrateError):
    """The pod does not take commands: not yet, or not any more."""


class Cluster:
    """One API server, connected to on first use; good for one event loop at a time."""

    def __init__(self, options: Options) -> None:
        self.substrate = options.name
        self.namespace = options.namespace or "default"
        self._options = options
        self._client: ApiClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sockets: set[aiohttp.ClientWebSocketResponse] = set()

    @asynccontextmanager
    async def asking(
        self, phase: Phase, deadline_s: float | None = CALL_DEADLINE_S
    ) -> AsyncIterator[Cluster]:
        """Within a deadline; what fails in here is raised as this substrate's error."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._connect(phase)
                yield self
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"the API server did not answer within {deadline_s:g} s",
                substrate=self.substrate,
                phase=phase,
                retryable=True,
            ) from error
        except Refused as error:
            raise self._translated(error, phase) from error
        except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
            raise SubstrateUnavailable(
                f"no API server answers at {self.server}: {error}",
                substrate=self.substrate,
                phase=phase,
            ) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self.broken(f"the connection broke: {error!r}", phase, retryable=True) from error

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        **query: str,
    ) -> dict[str, Any]:
        """One request; `Refused` where the server says no. Only within `asking`."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {**await self._signed(), "Content-Type": kind}
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        async with self._session.request(
            method, self._url(path), params=query, data=data, headers=headers
        ) as answer:
            said = await answer.read()
            if answer.status >= 400:
                raise refusal(answer.status, said)
        found: dict[str, Any] = json.loads(said)
        return found

    async def follow(self, path: str, **query: str) -> AsyncGenerator[dict[str, Any], None]:
        """What a watch tells, until the server ends it. Only within `asking`."""
        endless = aiohttp.ClientTimeout(total=None)
        async with self._session.get(
            self._url(path), params=query, headers=await self._signed(), timeout=endless
        ) as answer:
            if answer.status >= 400:
                raise refusal(answer.status, await answer.read())
            try:
                async for line in answer.content:
                    yield json.loads(line)
            finally:
                _abort(answer)

    async def exec(
        self, pod: str, container: str, argv: tuple[str, ...], *, stdin: bool
    ) -> aiohttp.ClientWebSocketResponse:
        """Start a command; `NotRunning` where there is nothing to start it in. Only within `asking`."""
        at = channels.path(self.namespace, pod, container, argv, stdin=stdin)
        try:
            socket = await self._session.ws_connect(
                self._url(at),
                protocols=(channels.PROTOCOL,),
                headers=await self._signed(),
                max_msg_size=0,
                autoclose=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise NotRunning(
                f"the cluster refused to run a command (status {error.status})",
                substrate=self.substrate,
                phase=Phase.RUN,
                retryable=True,
            ) from error
        self._sockets.add(socket)
        return socket

    def hang_up(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """At once: a goodbye in good order would wait for the other side's."""
        self._sockets.discard(socket)
        _abort(socket._response)  # noqa: SLF001

    def broken(self, message: str, phase: Phase, *, retryable: bool = False) -> SubstrateError:
        return SubstrateError(message, substrate=self.substrate, phase=phase, retryable=retryable)

    @property
    def server(self) -> str:
        return "" if self._client is None else str(self._client.configuration.host)

    def in_namespace(self, kind: str, name: str = "") -> str:
        """The path of objects of the core group."""
        at = f"/api/v1/namespaces/{self.namespace}/{kind}"
        return f"{at}/{name}" if name else at

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            for socket in tuple(self._sockets):
                self.hang_up(socket)
            await client.close()
            for _ in range(3):  # what was aborted is closed in the loop's next turns
                await asyncio.sleep(0)

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._client is not None
        session: aiohttp.ClientSession = self._client.rest_client.pool_manager
        return session

    def _url(self, path: str) -> URL:
        return URL(self.server + path, encoded=True)

    async def _signed(self) -> dict[str, str]:
        assert self._client is not None
        settings = await self._client.configuration.auth_settings()
        return {each["key"]: each["value"] for each in settings.values() if each["in"] == "header"}

    async def _connect(self, phase: Phase) -> None:
        loop = asyncio.get_running_loop()
        if self._client is not None and self._loop is loop:
            return
        try:
            configuration, namespace = await configured(self._options)
        except (ConfigException, OSError, ValueError, KeyError) as error:
            raise SubstrateUnavailable(
                f"no usable kubeconfig: {error}", substrate=self.substrate, phase=phase
            ) from error
        configuration.connection_pool_maxsize = 0  # 100 would queue a burst of sandboxes in here
        self._client, self._loop = ApiClient(configuration), loop
        kube_config._cleanup_temp_files()  # noqa: SLF001  # they are loaded, and a kill would leave keys in /tmp
        self.namespace = self._options.namespace or namespace or "default"

    def _translated(self, error: Refused, phase: Phase) -> SubstrateError | InputError:
        text = f"{error.message} (status {error.status})"
        if error.status == 404:
            return SandboxGone(text, substrate=self.substrate, phase=phase)
        if error.status == 401 or (error.status == 403 and "quota" not in error.message):
            return SubstrateUnavailable(
                f"the cluster does not allow it: {text}", substrate=self.substrate, phase=phase
            )
        if error.status in {400, 422}:
            return InputError(f"{self.substrate}: the cluster refuses this: {error.message}")
        return self.broken(text, phase, retryable=True)


def _abort(answer: aiohttp.ClientResponse) -> None:
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def refusal(status: int, said: bytes) -> Refused:
    """The server explains itself in an object of the kind Status, proxies before it in anything."""
    try:
        found = json.loads(said)
        return Refused(status, str(found["message"]), str(found.get("reason") or ""))
    except (ValueError, KeyError, TypeError):
        return Refused(status, said[:300].decode("utf-8", "replace").strip() or "no words")


async def configured(options: Options) -> tuple[Configuration, str | None]:
    """Where to connect and as whom, and the namespace that the configuration says."""
    configuration = Configuration()
    of_pod = _namespace_of_pod()
    if options.config is None and of_pod is not None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return configuration, of_pod
    where = options.config or os.environ.get("KUBECONFIG") or str(config_file())
    if not any(Path(each).exists() for each in where.split(os.pathsep)):  # noqa: ASYNC240
        raise FileNotFoundError(f"{where} is not there")
    loader = await kube_config.load_kube_config(
        config_file=where,
        context=options.context,
        client_configuration=configuration,
        persist_config=False,
    )
    said = (loader.current_context or {}).get("context") or {}
    return configuration, said["namespace"] if "namespace" in said else None  # noqa: SIM401  # theirs has no get


def _namespace_of_pod() -> str | None:
    """Where this process is in a pod and nobody says otherwise."""
    if config_file().exists() or not NAMESPACE.exists():
        return None
    return NAMESPACE.read_text().strip()


def config_file() -> Path:
    """Where kubectl looks first."""
    first = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
    return Path(first) if first else Path.home() / ".kube" / "config"
