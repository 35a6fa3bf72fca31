"""A sandbox's place on disk: its name, its parts, its record, what may go into it, and its removal."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from excise.errors import InputError
from excise.substrates.local.proctree import started
from excise.types import Handle, Repo, Spec

NAME = "local"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RECORD = "sandbox.json"
PARTS = ("work", "home", "tmp")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What `create` decided; kept in the sandbox's directory, so that a handle works in any process."""

    root: str
    env: Mapping[str, str]
    cpuset: tuple[int, ...] | None = None
    repo: Repo | None = None
    network: bool = True

    @property
    def work(self) -> str:
        return f"{self.root}/work"


def new_handle(name: str = NAME) -> Handle:
    """A name that tells whose sandbox it is: process id and start time name a process for good."""
    me = os.getpid()
    return Handle(f"{name}-{me}-{started(me)}-{secrets.token_hex(4)}")


def environment(root: str) -> dict[str, str]:
    """What every command gets, and nothing of the caller's own environment."""
    return {
        "PATH": PATH,
        "HOME": f"{root}/home",
        "TMPDIR": f"{root}/tmp",  # noqa: S108  (ours alone)
        "LANG": "C.UTF-8",
    }


def owner(entry: str, name: str = NAME) -> tuple[int, int] | None:
    """Process id and start time in a handle, or None if it is not one of ours."""
    given, *fields = entry.rsplit("-", 3)
    if given != name or len(fields) != 3 or not (fields[0] + fields[1]).isdigit():
        return None
    return (int(fields[0]), int(fields[1])) if fields[2].isalnum() else None


def refuse_what_cannot_be(spec: Spec, name: str = NAME) -> None:
    if spec.image != "host":
        raise InputError(f"{name} has no images: image must be 'host', not {spec.image!r}")
    if spec.deps:
        raise InputError(f"{name} lays no dependencies: install them on this host, or take a jail")
    if spec.warm:
        raise InputError(f"{name} keeps no interpreter warm: leave Spec.warm out, or take a jail")
    refuse_other_user(spec.user, name)
    cpuset = spec.limits.cpuset
    if cpuset is not None and not set(cpuset) & set(range(os.cpu_count() or 1)):
        raise InputError(f"limits.cpuset names none of this host's processors: {cpuset}")
    if spec.repo is not None:
        path = os.path.normpath(spec.repo.path)
        if os.path.isabs(path) or path.startswith("..") or path == ".":
            raise InputError(f"repo.path must lie inside the workspace, not at {spec.repo.path!r}")
        if not os.path.isdir(spec.repo.source):
            raise InputError(f"repo.source is not a directory: {spec.repo.source}")


def refuse_other_user(user: str | None, name: str = NAME) -> None:
    if user is not None and user != str(os.getuid()):
        raise InputError(f"{name} runs everything as you; leave user out")


def remove_if_empty(root: str) -> bool:
    """Remove a sandbox that nothing was left in; False if there was something."""
    try:
        for part in PARTS:
            os.rmdir(f"{root}/{part}")
        os.unlink(f"{root}/{RECORD}")
        os.rmdir(root)
    except OSError:
        return False
    return True


def permit(root: str) -> None:
    """Give back the permissions that a command took away from itself, so that it can be removed."""
    for folder, names, _ in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
