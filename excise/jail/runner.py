"""Fills layers with what commands in a jail write: a package's own scripts run where agents' commands run.

Each layer gets a jail of its own on the layers below. What is written there is copied into the layer when the
commands are done, with the owners that the jail saw; what fails leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from excise.agent.connection import Connection
from excise.agent.messages import Exec
from excise.errors import LayerError, SubstrateError
from excise.jail import egress
from excise.jail.control import Bind, BoxLimits
from excise.jail.ids import first_id
from excise.jail.spawner import Box, Spawner
from excise.layers.place import remove_tree
from excise.layers.recipes.base import ENV
from excise.layers.recipes.snapshot import Owners, copy
from excise.layers.runner import Command, Work, said_no
from excise.types import Egress

RESOLV_CONF = "etc/resolv.conf"
_PASSING = ("tmp", "run", "var/tmp")
"""What is written there is nobody's to keep."""

_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class JailRunner:
    """`binds` and `env` are those of the environment; without egress nothing can be downloaded."""

    spawner: Spawner
    binds: Sequence[Bind] = ()
    env: Mapping[str, str] = field(default_factory=lambda: dict(ENV))
    egress: Egress = Egress.FULL
    limits: BoxLimits = field(default_factory=BoxLimits)

    @property
    def contained(self) -> bool:
        return True

    def identity(self, program: str) -> str:
        """Nothing beside the layers below: a program comes from one of them."""
        del program
        return ""

    def sees(self, tree: Path, at: str) -> str:
        del tree
        return at

    def run(self, work: Work, *, below: Sequence[Path], tree: Path) -> None:
        try:
            stack = self.spawner.stack([str(path) for path in below], self.binds)
            try:
                self._fill(stack, work, tree)
            finally:
                self.spawner.unstack(stack)
        except SubstrateError as error:
            raise LayerError(f"a jail to fill the layer in was not possible: {error}") from error

    def _fill(self, stack: int, work: Work, tree: Path) -> None:
        box = self.spawner.create(stack, self.limits)
        with Connection(box.socket) as agent:
            try:
                self._do(work, agent, box)
            except BaseException:
                self.spawner.destroy(box.number)
                raise
            left = self.spawner.snapshot(box.number)
        self.spawner.unstack(left.stack)
        folder = self.spawner.frozen(left.snapshot)
        try:
            copy(Path(f"/proc/self/fd/{folder}"), tree, Owners(_first_id()))
        finally:
            os.close(folder)
            self.spawner.forget(left.snapshot)
        _forget_passing(tree)

    def _do(self, work: Work, agent: Connection, box: Box) -> None:
        for at, data in work.inputs.items():
            agent.write(at, data, parents=True)
        if self.egress is Egress.NONE:
            self._run(work.commands, agent)
            return
        with egress.open_egress_now(box.pid, self.egress) as network:
            agent.write(f"/{RESOLV_CONF}", network.resolv_conf.encode())
            self._run(work.commands, agent)

    def _run(self, commands: Sequence[Command], agent: Connection) -> None:
        for command in commands:
            env = {**self.env, **command.env}
            done = agent.run(Exec(command.argv, command.cwd, env, timeout_s=_PATIENCE_S))
            if done.code != 0:
                out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
                raise said_no(command, out, err)


def _first_id() -> int:
    return first_id(Path("/proc/self/uid_map").read_text()) if os.geteuid() == 0 else 0


def _forget_passing(tree: Path) -> None:
    """What the jail's name server was, and what was left in places that every sandbox has empty."""
    (tree / RESOLV_CONF).unlink(missing_ok=True)
    for name in _PASSING:
        if (tree / name).is_dir() and not (tree / name).is_symlink():
            for entry in (tree / name).iterdir():
                remove_tree(entry)
