"""The remote substrate for event loops: every verb is one request to a service, on a connection that is kept.

A sandbox is leased. While this process lives its leases are renewed in the background; when it is killed the
service reaps what it had. Cancelling an action kills it in its sandbox before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from typing import Self

import msgspec

from excise.errors import DeadlineExceeded, ExciseError, InputError, Phase, SandboxGone
from excise.substrates.base import Background, Proof, Shell, Stream, Terminal
from excise.substrates.remote import wire
from excise.substrates.remote.blocking import ask_once
from excise.substrates.remote.convert import action_wire, observation_of, spec_wire
from excise.substrates.remote.http import Http
from excise.substrates.remote.problems import NAME
from excise.substrates.remote.requests import Target, part, request
from excise.substrates.remote.streams import RemoteShell, RemoteStream
from excise.substrates.remote.tree import RemoteTree
from excise.types import Action, Handle, Isolation, Observation, Spec

PATIENCE_S = 60.0
"""For what needs neither a command nor a creation."""

CREATE_S = 900.0
GRACE_S = 30.0
"""How long after a command's own time limit the service may take to tell of it."""

LEASE_S = 600.0
RENEWALS_PER_LEASE = 3

_SANDBOX = msgspec.json.Decoder(wire.SandboxWire).decode
_SANDBOXES = msgspec.json.Decoder(wire.SandboxesWire).decode
_OBSERVATION = msgspec.json.Decoder(wire.ObservationWire).decode
_SERVICE = msgspec.json.Decoder(wire.ServiceWire).decode
_PROCESSES = msgspec.json.Decoder(wire.ProcessesWire).decode
_PROCESS = msgspec.json.Decoder(wire.ProcessWire).decode
_RENEWED = msgspec.json.Decoder(wire.RenewedWire).decode
_TEMPLATE = msgspec.json.Decoder(wire.TemplateWire).decode
_SHELL = msgspec.json.Decoder(wire.ShellWire).decode
_PROOF = msgspec.json.Decoder(wire.ProofWire).decode


class Remote(RemoteTree):
    """`excise.connect(url, key)`. With a `template`, sandboxes are made of that unless a spec names an image."""

    name = NAME

    def __init__(
        self,
        target: Target,
        *,
        template: str | None = None,
        tls: ssl.SSLContext | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        self.http = Http(target, tls=tls)
        self._template = template
        self._tls = tls
        self._lease_s = lease_s
        self._boxes: set[Handle] = set()
        self._service: wire.ServiceWire | None = None
        self._renewing: asyncio.Task[None] | None = None

    @classmethod
    def of(
        cls,
        url: str,
        key: str,
        *,
        template: str | None = None,
        ca: str | None = None,
        lease_s: str | float = LEASE_S,
    ) -> Self:
        """From what a command line or a configuration says. `ca`: the certificate that signs the service's."""
        try:
            seconds = float(lease_s)
        except ValueError:
            raise InputError(f"lease_s is a number of seconds, not {lease_s!r}") from None
        if not 1 <= seconds <= 86_400:
            raise InputError(f"a lease of {seconds:g} s: give 1 to 86400")
        return cls(Target.of(url, key), template=template, tls=trusting(ca), lease_s=seconds)

    def __repr__(self) -> str:
        return f"<Remote {self.http.target.url} with {len(self._boxes)} sandboxes>"

    @property
    def isolation(self) -> Isolation:
        """Of what is served there; asks once."""
        return Isolation[self._served().isolation.upper()]

    @property
    def times_inside(self) -> bool:
        return self._served().times_inside

    async def create(self, spec: Spec) -> Handle:
        asked = wire.CreateWire(
            spec=None if self._template and spec.image == "host" else spec_wire(spec),
            env=dict(spec.env),
            labels=dict(spec.labels),
            idle_s=self._lease_s,
            leased=True,
        )
        if asked.spec is None:
            asked.template = self._template
        headers = {wire.IDEMPOTENCY_KEY: secrets.token_hex(16)}
        data = request(self.http.target, "POST", "/v1/sandboxes", wire.encode(asked), headers)
        body = await self.http.ask(data, Phase.CREATE, patience_s=CREATE_S, repeatable=True)
        return self._entered(_SANDBOX(body))

    async def ready(self, box: Handle) -> None:
        """It answered before the service handed it out; what we did not make ourselves is asked for."""
        if box not in self._boxes:
            await self._ask("GET", box, "", Phase.READY)

    async def run(self, box: Handle, action: Action) -> Observation:
        id_ = secrets.token_hex(12)
        data = request(
            self.http.target,
            "POST",
            f"/v1/sandboxes/{part(box)}/run",
            wire.encode(action_wire(action)),
            {wire.ACTION_ID: id_},
        )
        patience_s = None if action.timeout_s is None else action.timeout_s + GRACE_S
        try:
            body = await self.http.ask(data, Phase.RUN, patience_s=patience_s, repeatable=True)
        except (asyncio.CancelledError, DeadlineExceeded):
            await self._kill(box, id_)
            raise
        return observation_of(_OBSERVATION(body))

    async def destroy(self, box: Handle) -> None:
        self._boxes.discard(box)
        with contextlib.suppress(SandboxGone):
            await self._ask("DELETE", box, "", Phase.DESTROY)

    async def reset(self, box: Handle) -> None:
        await self._ask("POST", box, "/reset", Phase.RESET)

    async def prove(self, box: Handle) -> Proof:
        found = _PROOF(await self._ask("GET", box, "/proof", Phase.RUN))
        return Proof(tuple(found.files), tuple(found.processes), tuple(found.mounts))

    async def pause(self, box: Handle) -> None:
        await self._ask("POST", box, "/pause", Phase.RUN)

    async def resume(self, box: Handle) -> None:
        await self._ask("POST", box, "/resume", Phase.RUN, wire.ResumeWire())

    async def quiet(self, box: Handle) -> None:
        """End all that runs in it."""
        await self._ask("POST", box, "/stop", Phase.RUN)
        await self._ask("POST", box, "/resume", Phase.RUN, wire.ResumeWire())

    async def snapshot(self, box: Handle) -> str:
        """The name of a template."""
        body = await self._ask("POST", box, "/snapshot", Phase.RESET, wire.SnapshotWire())
        return _TEMPLATE(body).name

    async def forget(self, reference: str) -> None:
        data = request(self.http.target, "DELETE", f"/v1/templates/{part(reference)}")
        with contextlib.suppress(InputError):
            await self.http.ask(data, Phase.DESTROY, patience_s=PATIENCE_S, repeatable=True)

    async def fork(self, box: Handle, copies: int = 1) -> list[Handle]:
        asked = wire.ForkWire(copies)
        if copies < 1:
            raise InputError(f"{copies} copies of a sandbox cannot be made: ask for 1 or more")
        found = _SANDBOXES(await self._ask("POST", box, "/fork", Phase.CREATE, asked, CREATE_S))
        return [self._entered(each) for each in found.items]

    async def stream(
        self,
        box: Handle,
        action: Action,
        *,
        terminal: Terminal | None = None,
        input_open: bool = True,
    ) -> Stream:
        asked = self._start(action, terminal, awaited=True, input_open=input_open)
        path = f"/v1/sandboxes/{part(box)}/processes"
        data = request(self.http.target, "POST", f"{path}?follow=true", wire.encode(asked))
        body = await self.http.stream(data, Phase.RUN, patience_s=PATIENCE_S, repeatable=False)
        return await RemoteStream.started(self.http, path, body)

    async def start(self, box: Handle, action: Action) -> int:
        asked = self._start(action, None, awaited=False, input_open=False)
        return _PROCESS(await self._ask("POST", box, "/processes", Phase.RUN, asked)).number

    async def started(self, box: Handle) -> list[Background]:
        found = _PROCESSES(await self._ask("GET", box, "/processes", Phase.RUN))
        return [Background(p.number, " ".join(p.argv), running=p.running) for p in found.items]

    async def attach(self, box: Handle, number: int) -> Stream:
        path = f"/v1/sandboxes/{part(box)}/processes"
        data = request(self.http.target, "GET", f"{path}/{number}/output")
        body = await self.http.stream(data, Phase.RUN, patience_s=PATIENCE_S, repeatable=True)
        return RemoteStream(self.http, f"{path}/{number}", body)

    async def signal(self, box: Handle, number: int, signal: int) -> None:
        asked = wire.SignalWire(signal)
        await self._ask("POST", box, f"/processes/{number}/signal", Phase.RUN, asked)

    async def open_shell(self, box: Handle) -> Shell:
        id_ = _SHELL(await self._ask("POST", box, "/shells", Phase.RUN)).id
        return RemoteShell(self.http, f"/v1/sandboxes/{part(box)}/shells/{id_}")

    async def describe(self) -> dict[str, str]:
        data = request(self.http.target, "GET", "/v1/service")
        found = _SERVICE(
            await self.http.ask(data, Phase.READY, patience_s=PATIENCE_S, repeatable=True)
        )
        self._service = found
        facts = {"url": self.http.target.url, "served": found.substrate, "service": found.version}
        return found.facts | facts

    async def close(self) -> None:
        """Let go of the connections. The sandboxes stay, until their leases end."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None
        await self.http.close()

    async def _ask(
        self,
        method: str,
        box: Handle,
        path: str,
        phase: Phase,
        asked: msgspec.Struct | None = None,
        patience_s: float = PATIENCE_S,
    ) -> bytes:
        body = None if asked is None else wire.encode(asked)
        data = request(self.http.target, method, f"/v1/sandboxes/{part(box)}{path}", body)
        repeatable = method != "POST"
        return await self.http.ask(data, phase, patience_s=patience_s, repeatable=repeatable)

    async def _kill(self, box: Handle, id_: str) -> None:
        """Whoever waited for this action does not any more: it must be dead before that is told."""
        data = request(self.http.target, "DELETE", f"/v1/sandboxes/{part(box)}/actions/{id_}")
        killing = asyncio.ensure_future(
            self.http.ask(data, Phase.RUN, patience_s=GRACE_S, repeatable=True)
        )
        while not killing.done():
            with contextlib.suppress(asyncio.CancelledError, ExciseError):
                await asyncio.shield(killing)
        if not killing.cancelled():
            killing.exception()

    def _start(
        self, action: Action, terminal: Terminal | None, *, awaited: bool, input_open: bool
    ) -> wire.StartWire:
        said = msgspec.structs.asdict(action_wire(action))
        size = None if terminal is None else wire.TerminalWire(terminal.rows, terminal.columns)
        opened = input_open and not action.stdin
        return wire.StartWire(**said, terminal=size, input_open=opened, awaited=awaited)

    def _entered(self, made: wire.SandboxWire) -> Handle:
        box = Handle(made.id)
        self._boxes.add(box)
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew())
        return box

    async def _renew(self) -> None:
        """Tell the service that we are alive, as long as there is something to be alive for."""
        while self._boxes:
            await asyncio.sleep(self._lease_s / RENEWALS_PER_LEASE)
            asked = wire.RenewWire(list(self._boxes))
            data = request(self.http.target, "POST", "/v1/renew", wire.encode(asked))
            with contextlib.suppress(ExciseError):  # the next renewal comes before the lease ends
                renewed = _RENEWED(await self._sent(data, repeatable=True))
                self._boxes.difference_update(map(Handle, renewed.gone))

    def _served(self) -> wire.ServiceWire:
        if self._service is None:
            data = request(self.http.target, "GET", "/v1/service")
            body = ask_once(self.http.target, data, Phase.READY, self._tls, PATIENCE_S)
            self._service = _SERVICE(body)
        return self._service


def trusting(ca: str | None) -> ssl.SSLContext | None:
    """A context that trusts this certificate; None: what this machine trusts."""
    if ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"ca={ca}: no certificate can be read there ({error})") from error
