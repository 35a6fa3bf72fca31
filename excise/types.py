"""The values everything else passes around: frozen, plain, picklable, free of behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NewType

Handle = NewType("Handle", str)
"""Names one sandbox of one substrate. A string, so that it survives a restart, crosses HTTP, and can be swept."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Isolation(IntEnum):
    """What stands between the agent's code and the host, weakest first."""

    NONE = 0
    NAMESPACES = 1
    CONTAINER = 2
    USER_KERNEL = 3
    VM = 4


class Egress(StrEnum):
    """What of the network a sandbox can reach."""

    NONE = "none"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Allow:
    """Egress to these targets only: `host:port` over TCP, or `host:port/udp`.

    `Allow(("pypi.org:443", "10.0.0.7:9418", "[2001:db8::1]:443"))`. A name is looked up by the host;
    no other name gets an answer in the sandbox.
    """

    targets: tuple[str, ...]


class Fault(StrEnum):
    """Why a command never started, so that a missing program and a missing directory are told apart."""

    MISSING_PROGRAM = "missing_program"
    NOT_EXECUTABLE = "not_executable"
    MISSING_CWD = "missing_cwd"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use. None means: not limited. The defaults are the study's."""

    cpus: float | None = 1.0
    memory_bytes: int | None = 2 * GIB
    pids: int | None = 512
    disk_bytes: int | None = 4 * GIB
    cpuset: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository that is in the workspace when the sandbox is created, below `path`.

    That `source` is a clean checkout of `commit` is proven by whoever makes it, once (for tasks
    `excise.tasks.forge.prepare`, each time it is asked), and not by substrates at every creation.
    """

    source: str
    commit: str
    path: str = "repo"


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies that are there when the sandbox is created: these exact versions and nothing else.

    `pip` and `uv` make a virtual environment of `python` at `path`, whose programs come first in PATH.
    `apt` installs Debian packages of the image's own distribution, and looks at neither.
    """

    requirements: tuple[str, ...]
    installer: str = "pip"
    path: str = "/opt/environment"
    python: str = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Spec:
    """The environment a rollout wants: a path of layers, and what is bound late to it."""

    image: str = "host"
    repo: Repo | None = None
    limits: Limits = Limits()
    egress: Egress | Allow = Egress.NONE
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    deps: tuple[Deps, ...] = ()
    """Below the repository, so that all its commits share them. Substrates that lay none refuse them."""
    warm: str | None = None
    """The interpreter whose imports are done ahead, by its path, or `auto`: see docs/warm-interpreter.md."""


@dataclass(frozen=True, slots=True)
class Action:
    """One command of the agent. A relative `cwd` counts from the sandbox's workspace."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    user: str | None = None
    timeout_s: float | None = 60.0
    output_limit_bytes: int = 64 * MIB

    @classmethod
    def shell(
        cls,
        script: str,
        *,
        merge: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float | None = 60.0,
    ) -> Action:
        """A script in a fresh `bash -c`; `merge` sends stderr into stdout, in order, as agents read it."""
        text = f"exec 2>&1\n{script}" if merge else script
        return cls(
            argv=("bash", "-c", text),
            cwd=cwd,
            env=dict(env or {}),
            stdin=stdin,
            timeout_s=timeout_s,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of an action. Exit codes are the shell's: 128+signal, 127 missing, 126 not runnable.

    `inside_ns` is the command's own duration, timed inside the sandbox (fork to reap), or None where
    nothing in there can time it. Output over the action's limit keeps its head and its tail;
    `stdout_bytes` and `stderr_bytes` count all of it.
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    truncated: bool = False
    oom: bool = False
    fault: Fault | None = None
    inside_ns: int | None = None
    cpu_ns: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out

    @property
    def text(self) -> str:
        """The output as an agent's prompt would show it."""
        return (self.stdout + self.stderr).decode("utf-8", "replace")
