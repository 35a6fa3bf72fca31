"""What the SDK sends, as values: names and types as the protocol has them, checked when they are read. Pure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from excise.errors import InputError

T = TypeVar("T")


class Body(msgspec.Struct, rename="camel"):
    """A JSON object of the protocol. Fields that are not known are passed over, as its own server does."""


class Build(Body):
    """A Dockerfile, and the archives of the files that it copies."""

    dockerfile_content: str
    context_hashes: list[str] | None = None


class Volume(Body):
    volume_id: str
    mount_path: str


class NewSandbox(Body):
    """Intervals are in minutes; cpu in cores, memory and disk in GiB."""

    name: str | None = None
    snapshot: str | None = None
    user: str | None = None
    env: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    public: bool | None = None
    network_block_all: bool | None = None
    network_allow_list: str | None = None
    domain_allow_list: str | None = None
    target: str | None = None
    cpu: int | None = None
    gpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    auto_stop_interval: int | None = None
    auto_pause_interval: int | None = None
    auto_archive_interval: int | None = None
    auto_delete_interval: int | None = None
    ttl_minutes: int | None = None
    volumes: list[Volume] | None = None
    secrets: list[dict[str, str]] | None = None
    outbound_proxy_url: str | None = None
    kvm: bool | None = None
    build_info: Build | None = None


class NewSnapshot(Body):
    name: str
    image_name: str | None = None
    entrypoint: list[str] | None = None
    cpu: int | None = None
    gpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    build_info: Build | None = None


class Labels(Body):
    labels: dict[str, str]


class Named(Body):
    name: str | None = None


class Network(Body):
    network_block_all: bool | None = None
    network_allow_list: str | None = None
    domain_allow_list: str | None = None


class Execute(Body):
    command: str
    cwd: str | None = None
    envs: dict[str, str] | None = None
    timeout: float | None = None


class CodeRun(Body):
    code: str
    language: str = "python"
    argv: list[str] | None = None
    envs: dict[str, str] | None = None
    timeout: float | None = None


class NewSession(Body):
    session_id: str


class SessionExecute(Body):
    command: str
    run_async: bool | None = None
    var_async: bool | None = msgspec.field(default=None, name="async")


class Input(Body):
    data: str


class NewPty(Body):
    id: str = ""
    cwd: str | None = None
    envs: dict[str, str] | None = None
    cols: int | None = None
    rows: int | None = None
    lazy_start: bool | None = None


class Size(Body):
    cols: int
    rows: int


class Paths(Body):
    paths: list[str]


class Replace(Body):
    files: list[str]
    pattern: str
    new_value: str


class Context(Body):
    cwd: str | None = None
    language: str | None = None


class RunCode(Body):
    code: str
    context_id: str | None = None
    envs: dict[str, str] | None = None
    timeout: float | None = None


class UpdateEnv(Body):
    set: dict[str, str] | None = None
    unset: list[str] | None = None


class Repository(Body):
    """What every request about a repository has."""

    path: str


class Clone(Repository):
    url: str
    branch: str | None = None
    commit_id: str | None = msgspec.field(default=None, name="commit_id")
    username: str | None = None
    password: str | None = None
    insecure_skip_tls: bool | None = msgspec.field(default=None, name="insecure_skip_tls")
    depth: int | None = None


class Add(Repository):
    files: list[str]


class Commit(Repository):
    message: str
    author: str
    email: str
    allow_empty: bool | None = msgspec.field(default=None, name="allow_empty")


class Branch(Repository):
    name: str


class Checkout(Repository):
    branch: str


class Exchange(Repository):
    """A push or a pull."""

    username: str | None = None
    password: str | None = None
    branch: str | None = None
    remote: str | None = None
    set_upstream: bool | None = msgspec.field(default=None, name="set_upstream")


class Init(Repository):
    bare: bool | None = None
    initial_branch: str | None = msgspec.field(default=None, name="initial_branch")


class Reset(Repository):
    mode: str | None = None
    target: str | None = None
    files: list[str] | None = None


class Restore(Repository):
    files: list[str]
    staged: bool | None = None
    worktree: bool | None = None
    source: str | None = None


class Remote(Repository):
    name: str
    url: str
    fetch: bool | None = None
    overwrite: bool | None = None


class Setting(Body):
    key: str
    value: str
    scope: str = "global"
    path: str | None = None


class Author(Body):
    name: str
    email: str
    scope: str = "global"
    path: str | None = None


class Credentials(Body):
    username: str
    password: str
    host: str | None = None
    protocol: str | None = None


def read(data: bytes, kind: type[T]) -> T:
    """The value, or InputError that says where it is wrong."""
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"the body is not what this route takes: {error}"[:500]) from error
