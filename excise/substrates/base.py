"""The contract of a substrate: four verbs, which are the terms of the tax, and small optional abilities.

A substrate is a stateless driver without a stopwatch: `Session` owns the clock, the lifecycle and the
marks. Optional abilities are protocols of their own, asked for with `isinstance`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from excise.types import Action, Handle, Isolation, Observation, Spec


@runtime_checkable
class Substrate(Protocol):
    """Creates, readies, runs in and destroys sandboxes.

    Errors: `SubstrateError` with its phase; `SandboxGone` for a handle that does not exist (any more);
    `InputError` for a spec that this substrate can never satisfy. A failed command is an Observation.
    Cancelling any verb must leave nothing running that `destroy` would not remove.
    """

    @property
    def name(self) -> str: ...
    @property
    def isolation(self) -> Isolation: ...

    async def create(self, spec: Spec) -> Handle:
        """Return when the sandbox is provisioned."""
        ...

    async def ready(self, box: Handle) -> None:
        """Return when an action could run."""
        ...

    async def run(self, box: Handle, action: Action) -> Observation:
        """Run one command to its end. On time-out the whole process tree is dead when this returns."""
        ...

    async def destroy(self, box: Handle) -> None:
        """Remove the sandbox and all it holds. Idempotent."""
        ...


@runtime_checkable
class Resettable(Protocol):
    """Can return a sandbox to the state that `create` gave it."""

    async def reset(self, box: Handle) -> None: ...


@runtime_checkable
class Files(Protocol):
    """Reads and writes files without spawning a command. Relative paths count from the workspace."""

    async def read(self, box: Handle, path: str) -> bytes: ...
    async def write(self, box: Handle, path: str, data: bytes) -> None: ...


class EntryKind(StrEnum):
    """What a path leads to."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, directory or link in a sandbox. `mode` holds the permission bits alone."""

    name: str
    kind: EntryKind
    size: int
    mode: int
    uid: int
    gid: int
    modified_ns: int
    target: str | None = None


@runtime_checkable
class Tree(Protocol):
    """Works on a sandbox's files without spawning a command. Errors about a path are `OSError`s, as at home."""

    async def stat(self, box: Handle, path: str, *, follow: bool = True) -> Entry: ...
    async def look(self, box: Handle, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        """How many paths look, links followed: bytes that are equal as long as nothing was changed.

        Of `kinds` counts only what they lead to, if to anything.
        """
        ...

    async def entries(self, box: Handle, path: str) -> list[Entry]:
        """What is in a directory, sorted by name; links are told as links."""
        ...

    async def read_part(self, box: Handle, path: str, offset: int, most: int) -> bytes:
        """At most `most` bytes from `offset` on; less only where the file ends."""
        ...

    async def put(
        self,
        box: Handle,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
    ) -> None:
        """Make or replace a file, whole or not at all, with the directories above it."""
        ...

    async def make_directory(self, box: Handle, path: str, *, mode: int = 0o755) -> None:
        """With those above it; FileExistsError where there is something already."""
        ...

    async def remove(self, box: Handle, path: str, *, tree: bool = False) -> None: ...
    async def rename(self, box: Handle, path: str, to: str) -> None: ...
    async def chmod(self, box: Handle, path: str, mode: int) -> None: ...
    async def chown(self, box: Handle, path: str, uid: int, gid: int) -> None: ...


@runtime_checkable
class Quiets(Protocol):
    """Ends everything that runs in a sandbox; its files stay, and it can run again."""

    async def quiet(self, box: Handle) -> None: ...


class Shell(Protocol):
    """A persistent shell: directory, variables and functions survive from one script to the next."""

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation: ...
    async def close(self) -> None: ...


@runtime_checkable
class Shells(Protocol):
    """Opens persistent shells inside a sandbox."""

    async def open_shell(self, box: Handle) -> Shell: ...


class Stream(Protocol):
    """A command under way: iterate over what it writes as it comes, then ask how it ended."""

    def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        """Pairs of the stream, 1 or 2 as a shell counts them, and what came on it."""
        ...

    async def write(self, data: bytes) -> None: ...
    async def end_of_input(self) -> None: ...
    async def signal(self, number: int) -> None: ...
    async def resize(self, rows: int, columns: int) -> None: ...
    async def wait(self) -> Observation:
        """The end, without the output, which has been handed out."""
        ...

    async def close(self) -> None:
        """Be done with it: kill it if it still runs."""
        ...


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size of a terminal that a command runs on."""

    rows: int = 24
    columns: int = 80


@runtime_checkable
class Streams(Protocol):
    """Hands output out while the command runs, takes input meanwhile, and gives it a terminal if asked.

    With `input_open` false there is no input but the action's own: a shell spawned ahead may serve.
    """

    async def stream(
        self,
        box: Handle,
        action: Action,
        *,
        terminal: Terminal | None = None,
        input_open: bool = True,
    ) -> Stream: ...


@dataclass(frozen=True, slots=True)
class Background:
    """An action that goes on by itself."""

    number: int
    words: str
    running: bool


@runtime_checkable
class Backgrounds(Protocol):
    """Starts commands that survive the action that started them; they can be found, heard and ended again."""

    async def start(self, box: Handle, action: Action) -> int: ...
    async def started(self, box: Handle) -> list[Background]: ...
    async def attach(self, box: Handle, number: int) -> Stream: ...
    async def signal(self, box: Handle, number: int, signal: int) -> None: ...


@runtime_checkable
class Snapshots(Protocol):
    """Keeps a sandbox's files to make others from. What runs in it is ended; it goes on with its files."""

    async def snapshot(self, box: Handle) -> str:
        """A reference for `Spec.image`, valid until it is forgotten or the substrate is closed."""
        ...

    async def forget(self, reference: str) -> None: ...


@runtime_checkable
class Forks(Protocol):
    """Makes copies of a sandbox, whatever has been written in it. What runs in it is ended; it goes on."""

    async def fork(self, box: Handle, copies: int = 1) -> list[Handle]: ...


@runtime_checkable
class Pauses(Protocol):
    """Stops all of a sandbox's processes where they are, and lets them go on."""

    async def pause(self, box: Handle) -> None: ...
    async def resume(self, box: Handle) -> None: ...


@dataclass(frozen=True, slots=True)
class Proof:
    """What differs from a sandbox that was just created, by name. Pristine means: nothing."""

    files: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    tree: str = ""
    """A digest of the whole file tree as it was found, where the substrate takes one."""

    @property
    def pristine(self) -> bool:
        return not (self.files or self.processes or self.mounts or self.env or self.limits)


@runtime_checkable
class Proves(Protocol):
    """Can show that a sandbox is as it was created, by looking and not by belief."""

    async def prove(self, box: Handle) -> Proof: ...


@runtime_checkable
class TimesInside(Protocol):
    """Times commands inside the sandbox itself, so that `Observation.inside_ns` is never None."""

    @property
    def times_inside(self) -> bool: ...


@runtime_checkable
class ImportsImages(Protocol):
    """Takes a root file system as a tar archive, for hosts that reach no image registry."""

    async def has_image(self, reference: str) -> bool: ...
    async def import_image(self, reference: str, archive: Path) -> None: ...


@runtime_checkable
class ReachesHost(Protocol):
    """Knows the address by which a sandbox with egress reaches a server of the harness."""

    async def host_address(self) -> str: ...


@runtime_checkable
class SpawnsItself(Protocol):
    """Starts every process of its sandboxes itself: no daemon works for it, so that CPU time can be accounted for."""

    @property
    def spawns_itself(self) -> bool: ...


@runtime_checkable
class Paced(Protocol):
    """Looks after its sandboxes at fixed intervals: how soon it sees one depends on when in an interval a trial begins."""

    @property
    def interval_s(self) -> float: ...


@runtime_checkable
class Sweeps(Protocol):
    """Removes what killed owners left behind; returns how many sandboxes that were."""

    async def sweep(self) -> int: ...


@runtime_checkable
class Warms(Protocol):
    """Keeps interpreters of environments warm: those that a spec names, and with `warm` those of all."""

    warm: bool

    @property
    def warmed(self) -> Mapping[str, int]:
        """The same of all sandboxes that have ended."""
        ...

    async def warmth(self, box: Handle) -> Mapping[str, int]:
        """How often the interpreter was served, and why else it was not."""
        ...


@runtime_checkable
class Describes(Protocol):
    """Names the versions and settings that a measurement must be read with."""

    async def describe(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Spent:
    """What being ready has taken and saved since the substrate was opened, in seconds."""

    fill_s: float = 0.0
    """Making, resetting and proving sandboxes, on or off anybody's clock."""
    kept_s: float = 0.0
    """Idle sandboxes times how long they idled."""
    saved_s: float = 0.0
    """Preparation that creations found done."""


@runtime_checkable
class Prepares(Protocol):
    """Is ready before it is asked: what that takes is on no rollout's clock, so it is told apart."""

    async def prepare(self, spec: Spec, copies: int = 1) -> None:
        """Return when the next so many creations will find what this substrate promises to have."""
        ...

    def spent(self) -> Spent: ...


@runtime_checkable
class Closes(Protocol):
    """Holds a connection or a daemon's hand that wants letting go of."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a substrate works on this host; if not, why, and the command that would change that."""

    usable: bool
    reason: str
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.reason}; try: {self.remedy}" if self.remedy else self.reason
