"""The words of the native API: what its requests and answers hold. Client, server and OpenAPI document share them.

Bytes are base64 in JSON. Unknown fields are ignored by both sides, so that either may be newer.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

VERSION = "v1"
ACTION_ID = "Action-Id"
IDEMPOTENCY_KEY = "Idempotency-Key"
REQUEST_ID = "X-Request-Id"
API_KEY = "X-API-Key"

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=1024)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Texts = dict[Annotated[str, Meta(max_length=255)], Annotated[str, Meta(max_length=131072)]]
State = Literal["running", "paused", "stopped", "ended"]
AtEnd = Literal["destroy", "pause", "stop"]


class LimitsWire(Struct, omit_defaults=True):
    """What one sandbox may use; null is the service's own most."""

    cpus: Annotated[float, Meta(gt=0, le=4096)] | None = None
    memory_bytes: Annotated[int, Meta(ge=2**20, le=2**50)] | None = None
    pids: Annotated[int, Meta(ge=1, le=2**22)] | None = None
    disk_bytes: Annotated[int, Meta(ge=2**20, le=2**50)] | None = None


class RepoWire(Struct, omit_defaults=True):
    """A repository of the operator's that is in the workspace from the beginning."""

    source: Path
    commit: Name
    path: Path = "repo"


class SpecWire(Struct, omit_defaults=True):
    """An environment said in full, instead of by a template's name."""

    image: Annotated[str, Meta(min_length=1, max_length=1024)] = "host"
    repo: RepoWire | None = None
    limits: LimitsWire | None = None
    egress: Literal["none", "full"] | Annotated[list[Text], Meta(max_length=1000)] = "none"
    user: Name | None = None


class CreateWire(Struct, omit_defaults=True):
    """What kind of sandbox, for how long, and what happens then. `idle_s` is the lease: so long may nobody use it.

    `leased`: only requests renew the lease, and a command that still runs does not.
    """

    template: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    spec: SpecWire | None = None
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None
    env: Texts = {}
    labels: Texts = {}
    lifetime_s: Seconds | None = None
    idle_s: Seconds | None = None
    leased: bool = False
    at_end: AtEnd = "destroy"


class SandboxWire(Struct, omit_defaults=True):
    """A sandbox as its owner sees it. Times are seconds since 1970."""

    id: str
    state: State
    created_s: float
    ends_s: float | None = None
    name: str | None = None
    template: str | None = None
    image: str = "host"
    labels: dict[str, str] = {}
    idle_s: float | None = None
    at_end: AtEnd = "destroy"
    user: str | None = None
    workdir: str | None = None


class SandboxesWire(Struct):
    """Part of a list; `next` is the `after` of the part that follows."""

    items: list[SandboxWire]
    next: int | None = None


class KeepWire(Struct, omit_defaults=True):
    """What to change. `lifetime_s` counts from now on; `idle_s` 0 takes the lease away."""

    lifetime_s: Seconds | None = None
    idle_s: Seconds | None = None
    at_end: AtEnd | None = None
    labels: Texts | None = None


class ResumeWire(Struct, omit_defaults=True):
    """How long it lives from now on; null: as long as was asked for at first."""

    lifetime_s: Seconds | None = None


class RenewWire(Struct):
    """Sandboxes that somebody still wants."""

    ids: Annotated[list[Name], Meta(max_length=10000)]


class RenewedWire(Struct):
    """Those of them that are no more, with why."""

    gone: dict[str, str]


class ForkWire(Struct, omit_defaults=True):
    """How many copies, and how long they live."""

    copies: Annotated[int, Meta(ge=1, le=1000)] = 1
    lifetime_s: Seconds | None = None


class SnapshotWire(Struct, omit_defaults=True):
    """What to call the template that it becomes."""

    name: Name | None = None


class ActionWire(Struct, omit_defaults=True):
    """One command: `argv`, or a `script` for bash."""

    argv: Annotated[list[str], Meta(max_length=10000)] | None = None
    script: str | None = None
    cwd: Path | None = None
    env: Texts = {}
    stdin: bytes = b""
    user: Name | None = None
    timeout_s: Seconds | None = 60.0
    output_limit_bytes: Annotated[int, Meta(ge=0, le=2**30)] = 64 * 2**20


class ObservationWire(Struct, omit_defaults=True):
    """What came of a command. However it ended, this is no error of the service."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    truncated: bool = False
    oom: bool = False
    fault: Literal["missing_program", "not_executable", "missing_cwd"] | None = None
    inside_ns: int | None = None
    cpu_ns: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


class TerminalWire(Struct):
    """The size of a terminal."""

    rows: Annotated[int, Meta(ge=1, le=10000)] = 24
    columns: Annotated[int, Meta(ge=1, le=10000)] = 80


class StartWire(ActionWire, omit_defaults=True):
    """A command that goes on by itself. `input_open`: its input stays open to be written to."""

    tag: Name | None = None
    terminal: TerminalWire | None = None
    input_open: bool = False
    awaited: bool = False
    """Its output is about to be followed from the start: none of it may be forgotten until then."""


class ProcessWire(Struct, omit_defaults=True):
    """A command under way, or how it ended."""

    number: int
    argv: list[str]
    running: bool
    started_s: float
    tag: str | None = None
    written: int = 0
    exit: ObservationWire | None = None


class ProcessesWire(Struct):
    """Those under way, and those that ended lately."""

    items: list[ProcessWire]


class PieceWire(Struct, omit_defaults=True):
    """One line of a followed output: a piece, or at last `exit` or `error`. `stream` 0 is a gap up to `at`."""

    at: int = 0
    stream: int = 0
    data: bytes = b""
    exit: ObservationWire | None = None
    error: ErrorWire | None = None


class SignalWire(Struct):
    """Which signal to send to all that the process started."""

    number: Annotated[int, Meta(ge=1, le=64)]


class EntryWire(Struct, omit_defaults=True):
    """One file, directory or link."""

    path: str
    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int
    mode: int
    uid: int
    gid: int
    modified_ns: int
    target: str | None = None


class EntriesWire(Struct):
    """What is in a directory, by path."""

    items: list[EntryWire]


class DirectoryWire(Struct, omit_defaults=True):
    """A directory to make, with those above it."""

    path: Path
    mode: Annotated[int, Meta(ge=0, le=0o7777)] = 0o755
    user: Name | None = None


class MoveWire(Struct):
    """From where to where."""

    path: Path
    to: Path


class ModeWire(Struct, omit_defaults=True):
    """Permissions, owner, or both."""

    path: Path
    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    user: Name | None = None


class ChangeWire(Struct):
    """Something happened to a path that is watched."""

    path: str
    change: Literal["created", "written", "removed", "moved", "mode"]
    to: str | None = None


class ShellWire(Struct):
    """A persistent shell."""

    id: str


class ScriptWire(Struct, omit_defaults=True):
    """A script for a persistent shell."""

    script: str
    timeout_s: Seconds | None = 60.0


class ProofWire(Struct):
    """What differs from a sandbox that was just created."""

    files: list[str] = []
    processes: list[str] = []
    mounts: list[str] = []


class StepWire(Struct, omit_defaults=True):
    """One step of a template's build."""

    do: Literal["run", "copy", "env", "expand", "workdir", "user"]
    words: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    files: Annotated[str, Meta(pattern="^[0-9a-f]{16,128}$")] | None = None


class TemplateWire(Struct, omit_defaults=True):
    """What sandboxes are made of, by name."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]
    spec: SpecWire | None = None
    env: Texts = {}
    steps: Annotated[list[StepWire], Meta(max_length=1000)] = []
    user: Name | None = None
    workdir: Path | None = None
    start: str | None = None
    id: str | None = None
    mine: bool = True


class TemplatesWire(Struct):
    """Those that can be used."""

    items: list[TemplateWire]


class ServiceWire(Struct, omit_defaults=True):
    """What is served here."""

    version: str
    substrate: str
    isolation: str
    abilities: list[str]
    times_inside: bool = False
    facts: dict[str, str] = {}


class ErrorWire(Struct, omit_defaults=True):
    """What went wrong, by whose fault, in which phase, and whether asking again makes sense."""

    kind: str
    message: str
    fault: Literal["caller", "infrastructure"]
    phase: str | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    request_id: str | None = None
    substrate: str | None = None
    errno: int | None = None


class RefusalWire(Struct):
    """The body of every answer that is no success."""

    error: ErrorWire


encode = msgspec.json.Encoder().encode
