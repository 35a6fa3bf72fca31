"""Looks at what the step at hand asks for until a machine answers; the table decides what that means."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from excise.agent.async_connection import AsyncConnection
from excise.agent.errors import AgentError
from excise.substrates.vm.cloud.control import CloudControl, Look, State, Throttled, Unknown
from excise.substrates.vm.cloud.readiness import Lost, Progress, Sign, Step
from excise.substrates.vm.cloud.ssh import Account, CutOff, Ssh, TurnedAway, ssh_line

PORT_S = 5.0
_NOTHING = Look(State.PENDING)


@dataclass(slots=True)
class Machine:
    """One machine in a cloud and how far it has come; `agent` is there at the end."""

    id: str
    place: Path
    progress: Progress = field(default_factory=Progress)
    seen: Look = _NOTHING
    ssh: Ssh | None = None
    agent: AsyncConnection | None = None

    async def let_go(self) -> None:
        """Of the connection; the machine stays."""
        if self.agent is not None:
            self.agent.abort()
            self.agent = None
        if self.ssh is not None:
            await self.ssh.end()
            self.ssh = None


async def bring_up(
    machine: Machine, control: CloudControl, account: Account, program: bytes
) -> AsyncConnection:
    """Until its agent has answered. Raises Lost where it never will; a deadline is the caller's."""
    progress = machine.progress
    while not progress.ready:
        sign, pause_s = await _look(machine, control, account, program)
        if not progress.see(sign, time.monotonic_ns()):
            await asyncio.sleep(progress.pause_s if pause_s is None else pause_s)
    assert machine.agent is not None
    return machine.agent


async def _look(
    machine: Machine, control: CloudControl, account: Account, program: bytes
) -> tuple[Sign, float | None]:
    step = machine.progress.step
    if step in {Step.CREATED, Step.RUNNING}:
        return await _ask(machine, control)
    if step is Step.ADDRESS:
        return await _knock(machine, control)
    if step is Step.PORT_OPEN:
        return await _enter(machine, account, len(program)), None
    return await _greet(machine, program), None


async def _ask(machine: Machine, control: CloudControl) -> tuple[Sign, float | None]:
    try:
        machine.seen = await control.look(machine.id)
    except Throttled as error:
        return Sign.THROTTLED, error.after_s
    except Unknown:  # for a moment after its creation that is no bad sign
        created = machine.progress.step is Step.CREATED
        return (Sign.PENDING if created else Sign.GONE), None
    if machine.seen.state is State.GONE:
        return Sign.GONE, None
    if machine.seen.state is State.PENDING:
        return Sign.PENDING, None
    if machine.progress.step is Step.CREATED:
        return Sign.RUNS, None
    return (Sign.HAS_ADDRESS if machine.seen.address else Sign.NO_ADDRESS), None


async def _knock(machine: Machine, control: CloudControl) -> tuple[Sign, float | None]:
    """At the port; and now and then at the cloud, whose machine may be gone meanwhile."""
    address = machine.seen.address
    assert address is not None
    try:
        async with asyncio.timeout(PORT_S):
            _, writer = await asyncio.open_connection(address, machine.seen.port)
    except (OSError, TimeoutError):
        with contextlib.suppress(Throttled):
            if (await control.look(machine.id)).state is State.GONE:
                return Sign.GONE, None
        return Sign.CLOSED, None
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Sign.OPEN, None


async def _enter(machine: Machine, account: Account, agent: int) -> Sign:
    address = machine.seen.address
    assert address is not None
    hosts = machine.place / "known_hosts"
    machine.ssh = Ssh(ssh_line(account, address, machine.seen.port, hosts, agent))
    try:
        await machine.ssh.let_in()
    except TurnedAway:
        await machine.let_go()
        return Sign.TURNED_AWAY
    except CutOff:
        await machine.let_go()
        return Sign.CUT_OFF
    return Sign.LET_IN


async def _greet(machine: Machine, program: bytes) -> Sign:
    assert machine.ssh is not None
    try:
        machine.agent = await machine.ssh.agent(program)
        await machine.agent.hello()
    except CutOff:
        await machine.let_go()
        return Sign.CUT_OFF
    except AgentError as error:
        said = machine.ssh.complaint
        raise Lost(f"the agent does not run there: {said or error}") from error
    return Sign.ANSWERED
