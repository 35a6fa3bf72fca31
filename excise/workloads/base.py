"""A workload is a fixed list of steps on a site, each with what must come of it. Pure: it runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from excise.types import Action, Egress, Repo


@dataclass(frozen=True, slots=True)
class Site:
    """Where things are, as seen from inside the sandbox."""

    python: str = "python3"
    git_url: str = ""
    repo: Repo | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Golden:
    """What a step must give on every substrate: exit code, digest and size of the normalised observation."""

    exit_code: int
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a workload. `kind` is one of inspect, command, edit, test, set_up; `what` is finer."""

    kind: str
    script: str
    stdin: bytes = b""
    timeout_s: float = 60.0
    exit_code: int | None = 0
    """What the workload's author knows beforehand; None: nothing is known."""
    what: str = ""
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    times_out: bool = False
    """Whether this step is meant to run into its time limit."""

    def action(self, env: Mapping[str, str]) -> Action:
        return Action.shell(
            self.script,
            merge=True,
            cwd=self.cwd,
            env={**self.env, **env},
            stdin=self.stdin,
            timeout_s=self.timeout_s,
        )


class Workload(Protocol):
    """`set_up` steps are the component S; `steps` are the actions that are counted."""

    @property
    def name(self) -> str: ...
    @property
    def task(self) -> str | None: ...
    @property
    def egress(self) -> Egress: ...
    @property
    def preloaded(self) -> bool:
        """Whether the repository is in the sandbox already when it is created."""
        ...

    @property
    def persistent_shell(self) -> bool: ...
    def set_up(self, site: Site) -> Sequence[Step]: ...
    def steps(self, site: Site) -> Sequence[Step]: ...


def nothing(_: Site) -> tuple[Step, ...]:
    """The set-up of a workload that needs none."""
    return ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A workload written down as functions from the site to its steps; every built-in one is such."""

    name: str
    make_steps: Callable[[Site], tuple[Step, ...]]
    task: str | None = None
    egress: Egress = Egress.NONE
    preloaded: bool = False
    persistent_shell: bool = False
    make_set_up: Callable[[Site], tuple[Step, ...]] = nothing

    def set_up(self, site: Site) -> tuple[Step, ...]:
        return self.make_set_up(site)

    def steps(self, site: Site) -> tuple[Step, ...]:
        return self.make_steps(site)
