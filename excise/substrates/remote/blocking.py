"""A service for callers without an event loop: the same requests over one blocking socket per thread.

    with Service("http://127.0.0.1:7070", key) as service, service.create() as box:
        print(box.run(Action.shell("python3 --version")).text)

This is the shortest way to a service there is: one send and one receive per action. Leases are renewed by use, and
by `renew`; who waits longer than the lease between two actions asks for a longer one.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import threading
from types import TracebackType
from typing import Self

import msgspec

from excise.errors import DeadlineExceeded, InputError, Phase, SandboxGone, SubstrateError
from excise.substrates.remote import wire
from excise.substrates.remote.convert import action_wire, observation_of, spec_wire
from excise.substrates.remote.problems import NAME, error_of, refusal_of, unreachable
from excise.substrates.remote.replies import BadAnswer, Reply
from excise.substrates.remote.requests import Target, part, query, request
from excise.types import Action, Observation, Spec

CONNECT_S = 10.0
PATIENCE_S = 60.0
CREATE_S = 900.0
GRACE_S = 30.0
LEASE_S = 600.0
RECEIVE_BYTES = 256 * 1024
BYTES = "application/octet-stream"

_SANDBOX = msgspec.json.Decoder(wire.SandboxWire).decode
_OBSERVATION = msgspec.json.Decoder(wire.ObservationWire).decode


class Connection:
    """One kept connection. Not for two threads at once."""

    def __init__(self, target: Target, tls: ssl.SSLContext | None = None) -> None:
        self._target = target
        self._tls = tls
        self._socket: socket.socket | None = None

    def ask(
        self, data: bytes, phase: Phase, *, patience_s: float | None, repeatable: bool
    ) -> bytes:
        """The body of a successful answer; raises what any other one says."""
        kept = self._socket is not None
        reply = Reply()
        try:
            status, body = self._exchange(data, reply, phase, patience_s)
        except (OSError, BadAnswer) as error:
            self.close()
            if isinstance(error, TimeoutError):
                text = f"the service did not answer within {patience_s:g} s"
                raise DeadlineExceeded(text, substrate=NAME, phase=phase, retryable=True) from error
            if not (kept and repeatable) or reply.begun:
                text = f"the connection to the service broke: {error}"
                raise unreachable(text, phase, retryable=repeatable) from error
            return self.ask(data, phase, patience_s=patience_s, repeatable=repeatable)
        except BaseException:
            self.close()
            raise
        if status >= 300:
            raise error_of(refusal_of(status, body), phase)
        return body

    def close(self) -> None:
        """Let go; the next request connects again."""
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()

    def _exchange(
        self, data: bytes, reply: Reply, phase: Phase, patience_s: float | None
    ) -> tuple[int, bytes]:
        sock = self._socket or self._connect(phase)
        sock.settimeout(patience_s)
        sock.sendall(data)
        parts = []
        while not reply.done:
            came = sock.recv(RECEIVE_BYTES)
            if came:
                reply.feed(came)
            else:
                reply.end()
            if body := reply.take():
                parts.append(body)
        assert reply.head is not None
        if not reply.head.keeps:
            self.close()
        return reply.head.status, parts[0] if len(parts) == 1 else b"".join(parts)

    def _connect(self, phase: Phase) -> socket.socket:
        target = self._target
        try:
            sock = socket.create_connection((target.host, target.port), CONNECT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if target.secure:
                context = self._tls or ssl.create_default_context()
                sock = context.wrap_socket(sock, server_hostname=target.host)
        except OSError as error:
            text = f"no service at {target.url}: {error}; start one with `excise serve`"
            raise unreachable(text, phase) from error
        self._socket = sock
        return sock


def ask_once(
    target: Target, data: bytes, phase: Phase, tls: ssl.SSLContext | None, patience_s: float
) -> bytes:
    """One request on a connection of its own."""
    connection = Connection(target, tls)
    try:
        return connection.ask(data, phase, patience_s=patience_s, repeatable=True)
    finally:
        connection.close()


class Service:
    """Makes sandboxes of a service; each thread that uses it has a connection of its own."""

    def __init__(
        self, url: str, key: str, *, tls: ssl.SSLContext | None = None, lease_s: float = LEASE_S
    ) -> None:
        self.target = Target.of(url, key)
        self._tls = tls
        self._lease_s = lease_s
        self._mine = threading.local()
        self._all: list[Connection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create(self, spec: Spec | None = None, *, template: str | None = None) -> Sandbox:
        """A sandbox of that spec or template, once it could run an action."""
        if spec is not None and template is not None:
            raise InputError("a sandbox is made of a template or of a spec, not of both")
        asked = wire.CreateWire(
            template=template,
            spec=None if spec is None else spec_wire(spec),
            env=dict(spec.env) if spec else {},
            labels=dict(spec.labels) if spec else {},
            idle_s=self._lease_s,
            leased=True,
        )
        headers = {wire.IDEMPOTENCY_KEY: secrets.token_hex(16)}
        data = request(self.target, "POST", "/v1/sandboxes", wire.encode(asked), headers)
        return Sandbox(self, _SANDBOX(self.ask(data, Phase.CREATE, CREATE_S)).id)

    def ask(
        self,
        data: bytes,
        phase: Phase,
        patience_s: float | None = PATIENCE_S,
        *,
        again: bool = True,
    ) -> bytes:
        """One request on this thread's connection; it is sent `again` if that had broken meanwhile."""
        connection: Connection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = Connection(self.target, self._tls)
            self._all.append(connection)
        return connection.ask(data, phase, patience_s=patience_s, repeatable=again)

    def close(self) -> None:
        """Let go of the connections of all threads."""
        for connection in self._all:
            connection.close()


class Sandbox:
    """One sandbox of a service. Leaving the `with` block, or closing it, destroys it."""

    def __init__(self, service: Service, id_: str) -> None:
        self.id = id_
        self._service = service
        self._path = f"/v1/sandboxes/{part(id_)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"<Sandbox {self.id}>"

    def run(self, action: Action) -> Observation:
        """Run one command to its end. An interrupt kills it in its sandbox, too."""
        id_ = secrets.token_hex(12)
        body, target = wire.encode(action_wire(action)), self._service.target
        data = request(target, "POST", f"{self._path}/run", body, {wire.ACTION_ID: id_})
        patience_s = None if action.timeout_s is None else action.timeout_s + GRACE_S
        try:
            found = self._service.ask(data, Phase.RUN, patience_s)
        except (KeyboardInterrupt, DeadlineExceeded):
            kill = request(target, "DELETE", f"{self._path}/actions/{id_}")
            with contextlib.suppress(SubstrateError):
                self._service.ask(kill, Phase.RUN, GRACE_S)
            raise
        return observation_of(_OBSERVATION(found))

    def read(self, path: str) -> bytes:
        """A file, by its absolute path."""
        where = query(f"{self._path}/files", path=path)
        return self._service.ask(request(self._service.target, "GET", where), Phase.RUN)

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file, by its absolute path."""
        where = query(f"{self._path}/files", path=path)
        put = request(self._service.target, "PUT", where, data, kind=BYTES)
        self._service.ask(put, Phase.RUN)

    def renew(self) -> None:
        """It is still wanted."""
        asked = wire.encode(wire.RenewWire([self.id]))
        self._service.ask(request(self._service.target, "POST", "/v1/renew", asked), Phase.RUN)

    def destroy(self) -> None:
        """Idempotent."""
        with contextlib.suppress(SandboxGone):
            self._service.ask(request(self._service.target, "DELETE", self._path), Phase.DESTROY)
