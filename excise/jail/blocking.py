"""The jail for callers without an event loop: the same sandboxes over blocking sockets, the shortest way there is.

    with Jail() as jail, jail.create() as box:
        print(box.run(Action.shell("python3 --version")).text)

Any number of threads may share a `Jail` and even one sandbox. In a child of fork the sandboxes are the
parent's; the `Jail` makes new ones there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from excise.agent.connection import Connection
from excise.agent.errors import AgentRefused
from excise.agent.observation import observation_of
from excise.agent.running import Running
from excise.agent.running import Shell as AgentShell
from excise.errors import InputError, Phase, SubstrateError
from excise.jail import egress
from excise.jail.errors import told
from excise.jail.phase import NAME, gone
from excise.jail.proof import LOOK_AROUND, SHARED, Looks, Told, compare, look
from excise.jail.spawner import Box, Coming
from excise.jail.yard import Standing, Yard, limits_of
from excise.substrates.base import Proof, Terminal
from excise.substrates.inside.habits import exec_of, place
from excise.substrates.script import check, fits, spill
from excise.types import Action, Egress, Observation, Spec

_QUIET_S = 5.0

_Made: TypeAlias = tuple[Box, Connection, egress.Network | None]


class Jail:
    """Makes sandboxes; closing it ends them all."""

    def __init__(self, store: Path | None = None, *, leases: Path | None = None) -> None:
        self._yard = Yard(store, leases)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create(self, spec: Spec | None = None) -> Sandbox:
        """A fresh sandbox, once it could run an action."""
        wanted = spec or Spec()
        limits_of(wanted)
        egress.check(wanted.egress)
        standing = self._yard.known(wanted) or self._yard.lay(wanted)
        try:
            return Sandbox(self._yard, wanted, standing)
        finally:
            self._yard.let_go(standing)

    def forget(self, reference: str) -> None:
        """A snapshot is not used any more."""
        self._yard.forget(reference)

    def close(self) -> None:
        self._yard.close()


class Sandbox:
    """One jail. Leaving the `with` block, or closing it, destroys it."""

    def __init__(self, yard: Yard, spec: Spec, origin: Standing) -> None:
        self.name = yard.name()
        self._yard = yard
        self._spec = spec
        self._origin = origin
        self._limits = limits_of(spec)
        self._habits = yard.habits(spec, origin)
        self._turn = threading.Lock()
        self._oom_kills = 0
        self._closed = False
        self._owner = os.getpid()
        self._box, self._agent, self._network = _make(yard, spec, origin.stack)
        yard.use(origin)

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
        return f"<Sandbox {self.name}>"

    @property
    def pid(self) -> int:
        """The first process of the jail, as this process numbers it."""
        return self._box.pid

    def ping(self) -> int:
        """The clock of the agent inside."""
        with self._told(Phase.READY):
            return self._agent.ping()

    def run(self, action: Action) -> Observation:
        """Run one command to its end. On time-out the whole process tree is dead when this returns."""
        check(action.argv)
        with self._told(Phase.RUN):
            if not fits(action.argv):
                action = self._spill(action)
            what = exec_of(action, self._habits, one_shot=True)
            result = self._agent.run(what)
        oom = result.code != 0 and self._ran_out_of_memory()
        return observation_of(result, user=what.user, oom=oom)

    def _spill(self, action: Action) -> Action:
        """The same with its script in a file, if it is a script that is too long for an argument."""
        script = f"/tmp/.excise-{secrets.token_hex(8)}"  # noqa: S108  # in the jail
        spilled = spill(action.argv, script)
        if spilled is None:
            return action
        self._agent.write(script, f"rm -f {script} 2>/dev/null; ".encode() + spilled.data)
        return replace(action, argv=spilled.argv)

    def stream(self, action: Action, *, terminal: Terminal | None = None) -> Running:
        """A command whose output comes as it is written."""
        check(action.argv)
        what = exec_of(action, self._habits)
        if terminal is not None:
            what = replace(what, pty=True, rows=terminal.rows, columns=terminal.columns)
        with self._told(Phase.RUN):
            return self._agent.start(what, stdin_open=not action.stdin)

    def open_shell(self) -> Shell:
        """A bash that stays."""
        with self._told(Phase.RUN):
            shell = self._agent.open_shell(
                cwd=self._habits.workspace, env=self._habits.packed, user=self._habits.user
            )
        return Shell(shell, self)

    def read(self, path: str) -> bytes:
        with self._told(Phase.RUN):
            return self._agent.read(place(path, self._habits))

    def write(self, path: str, data: bytes) -> None:
        with self._told(Phase.RUN):
            self._agent.write(place(path, self._habits), data, parents=True)

    def reset(self) -> None:
        """Back to what `create` gave, whatever was dirtied."""
        stack, limits = self._origin.stack, self._limits
        with self._turn:
            before = self._replace(stack, self._yard.standby(stack, limits))
            self._yard.relieve(before[0].number, self._origin, limits)
            _close(self._yard, before)

    def snapshot(self) -> str:
        """Keep the files, as a reference for `Spec.image`. What runs is ended; the sandbox goes on."""
        with self._turn:
            standing = self._freeze()
            reference = self._yard.keep(standing)
            try:
                self._swap(standing.stack)
            except BaseException:
                self._yard.forget(reference)
                raise
        return reference

    def fork(self, copies: int = 1) -> list[Sandbox]:
        """So many sandboxes with the same files. What runs is ended; the sandbox goes on."""
        if copies < 1:
            raise InputError(f"{copies} copies of a sandbox cannot be made: ask for 1 or more")
        made: list[Sandbox] = []
        with self._turn, self._frozen() as standing:
            self._swap(standing.stack)
            try:
                made += (Sandbox(self._yard, self._spec, standing) for _ in range(copies))
            except BaseException:
                for each in made:
                    each.destroy()
                raise
        return made

    def prove(self) -> Proof:
        """Whether it is as it was made."""
        now = self._look()
        with Sandbox(self._yard, self._spec, self._origin) as sibling:
            ground = self._origin.ground
            return compare(now, sibling._look(), ground.digests, ground.missing)

    def pause(self) -> None:
        """Hold every process still."""
        self._yard.spawner.usage(self._box.kit).freeze()

    def resume(self) -> None:
        self._yard.spawner.usage(self._box.kit).thaw()

    def destroy(self) -> None:
        """Returns at once; what is left of it dies behind the caller's back. Idempotent."""
        with self._turn:
            if self._closed or self._owner != os.getpid():
                return
            self._closed = True
            self._kill((self._box, self._agent, self._network))
            self._yard.let_go(self._origin)

    def _kill(self, made: _Made) -> None:
        with contextlib.suppress(SubstrateError):
            self._yard.spawner.destroy(made[0].number)
        _close(self._yard, made)

    def _swap(self, stack: int) -> None:
        self._kill(self._replace(stack))

    def _replace(self, stack: int, coming: Coming | None = None) -> _Made:
        """Another jail in its place; what it was is returned, alive."""
        if self._closed:
            raise gone(f"{self.name} was destroyed", Phase.RESET)
        made = _make(self._yard, self._spec, stack, coming)
        before = (self._box, self._agent, self._network)
        self._box, self._agent, self._network = made
        self._oom_kills = 0
        return before

    def _freeze(self) -> Standing:
        with self._told(Phase.RESET):
            self._agent.quiet(_QUIET_S)
        frozen = self._yard.spawner.snapshot(self._box.number)
        return self._yard.stand_on(frozen, self._origin)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[Standing]:
        standing = self._freeze()
        self._yard.use(standing)
        try:
            yield standing
        finally:
            self._yard.let_go(standing)

    def _look(self) -> Looks:
        with self._told(Phase.RUN):
            seen = self._agent.run(exec_of(LOOK_AROUND, self._habits))
            shared = tuple(self._agent.read(place) for place in SHARED)
            processes = tuple((each.pid, each.name) for each in self._agent.processes())
        told_us = Told(processes, seen.stdout, shared)
        limits = self._yard.spawner.usage(self._box.kit).limits()
        upper = self._yard.spawner.upper(self._box.number)
        try:
            return look(upper, self._box.pid, told_us, limits)
        finally:
            os.close(upper)

    def _ran_out_of_memory(self) -> bool:
        kills = self._yard.spawner.usage(self._box.kit).oom_kills() or 0
        before, self._oom_kills = self._oom_kills, kills
        return kills > before

    def _told(self, phase: Phase) -> contextlib.AbstractContextManager[None]:
        if self._owner != os.getpid():
            raise gone(f"{self.name} is of another process: make one after the fork", phase)
        number = self._box.number
        return told(
            self.name,
            phase,
            lambda: self._yard.spawner.end_of(number),
            destroyed=lambda: self._closed,
        )


class Shell:
    """A persistent shell. When it has ended, every further script raises SandboxGone."""

    def __init__(self, shell: AgentShell, sandbox: Sandbox) -> None:
        self._shell = shell
        self._sandbox = sandbox

    def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        with self._sandbox._told(Phase.RUN):  # noqa: SLF001  # two classes of one file
            try:
                return observation_of(self._shell.run(script, timeout_s=timeout_s))
            except AgentRefused as error:
                raise gone(f"the shell has ended; open another ({error})", Phase.RUN) from error

    def close(self) -> None:
        self._shell.close()


def _close(yard: Yard, made: _Made) -> None:
    _, agent, network = made
    agent.close()
    if network is not None:
        yard.uplinks.let_go(network)


def _make(yard: Yard, spec: Spec, stack: int, coming: Coming | None = None) -> _Made:
    spawner = yard.spawner
    if coming is not None:
        made = spawner.collect(coming)
    else:
        made = spawner.create(stack, limits_of(spec), hostname=NAME)
    agent = Connection(made.socket)
    network = None
    try:
        if spec.egress is not Egress.NONE:
            network = yard.uplinks.open_now(made.pid, spec.egress)
            agent.write("/etc/resolv.conf", network.resolv_conf.encode())
    except BaseException:
        spawner.destroy(made.number)
        agent.close()
        if network is not None:
            yard.uplinks.let_go(network)
        raise
    return made, agent, network
