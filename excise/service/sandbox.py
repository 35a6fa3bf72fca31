"""One sandbox of the cloud: what was wanted, what it is, whose it is, and until when.

Times are nanoseconds of the cloud's monotonic clock; `Cloud.wall_s` turns them into time of day.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from excise.service.marks import ActionTimes
from excise.types import Allow, Deps, Egress, Handle, Limits, Repo, Spec

if TYPE_CHECKING:
    from excise.service.processes import Processes

NS = 1_000_000_000
ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
ID_LENGTH = 20
DEFAULT_LIFETIME_S = 300.0


class State(StrEnum):
    """PAUSED: every process is held where it is. STOPPED: nothing runs, the files are there."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    ENDED = "ended"


class AtEnd(StrEnum):
    """What happens to a sandbox when its time is over."""

    DESTROY = "destroy"
    PAUSE = "pause"
    STOP = "stop"


class Ended(StrEnum):
    """Why a sandbox is no more."""

    DESTROYED = "destroyed"
    DEADLINE = "its deadline passed"
    IDLE = "nobody used it within its lease"
    FAILED = "it failed"
    DRAINED = "the service was shut down"
    LOST = "it was lost when the service was killed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller asks for.

    `template` names what it is made of, `person`, `repo`, `deps`, `egress` and `limits` add to that; `spec` says it in
    full instead. `lifetime_s` is the deadline from now on; `idle_s` the lease: so long may nobody use it or renew
    it. None: the service's own limits. A command that still runs uses its sandbox, unless it is `leased`: then
    only what its owner asks for does. `at_idle` is what happens when the lease is over, if that is not what
    happens at the end; `rest_s` how long it may rest at most.
    """

    template: str | None = None
    spec: Spec | None = None
    name: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    lifetime_s: float | None = DEFAULT_LIFETIME_S
    idle_s: float | None = None
    leased: bool = False
    at_end: AtEnd = AtEnd.DESTROY
    at_idle: AtEnd | None = None
    rest_s: float | None = None
    person: str | None = None
    """Who acts where nobody is named and the template names nobody: made, with a home, if need be."""
    repo: Repo | None = None
    deps: tuple[Deps, ...] = ()
    egress: Egress | Allow | None = None
    limits: Limits | None = None
    """These two other than the template's; no more than the service allows."""
    door: str = "native"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Sandbox:
    """A sandbox as its owner knows it. Only the cloud writes into one."""

    id: str
    owner: str
    wanted: Wanted
    spec: Spec
    handle: Handle
    token: str
    """Proves that its bearer may reach into this one sandbox: for protocols that hand such a thing out."""
    asked_ns: int
    created_ns: int
    ready_ns: int
    used_ns: int
    deadline_ns: int | None
    idle_s: float | None
    at_end: AtEnd
    at_rest_end: AtEnd
    """What `at_end` was when it began to rest, and is again when it goes on."""
    at_idle: AtEnd | None
    rest_s: float | None
    processes: Processes
    name: str
    labels: dict[str, str]
    state: State = State.RUNNING
    ended: str | None = None
    """Why it is no more, in words."""
    ended_ns: int | None = None
    acting: int = 0
    """Actions, processes and transfers under way: what is in use is not idle."""
    number: int = 0
    """Its place in the order of creation: what lists are sorted by."""
    user: str | None = None
    workdir: str | None = None
    times: ActionTimes = field(default_factory=ActionTimes)
    notes: dict[str, object] = field(default_factory=dict)
    """For doors: what their protocol wants to be told again (and nothing that decides)."""

    @property
    def due_ns(self) -> int | None:
        """When its time is over, as far as is known now."""
        idle = None
        used = self.acting and not self.wanted.leased
        if self.idle_s is not None and not used and self.state is State.RUNNING:
            idle = self.used_ns + round(self.idle_s * NS)
        dues = [due for due in (self.deadline_ns, idle) if due is not None]
        return min(dues, default=None)


def new_id() -> str:
    """A hundred bits that nobody guesses, fit for a host name."""
    return "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))


def is_id(text: str) -> bool:
    """Whether it could be one of ours at all."""
    return len(text) == ID_LENGTH and all(letter in ID_LETTERS for letter in text)
