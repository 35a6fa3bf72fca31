"""What the operator of a service allows, in one frozen value; every default serves one machine."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from excise.errors import InputError
from excise.layers.images.reference import Source, parse
from excise.layers.recipe import HOST
from excise.types import GIB, Allow, Deps, Egress, Limits, Repo, Spec

_POSITIVE = (
    "longest_life_s", "longest_pause_s", "burst", "streams_per_owner", "sandboxes",
    "sandboxes_per_owner", "creates_per_s", "requests_per_s",
)  # fmt: skip
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of the whole service, of each owner, and of each sandbox. None: not limited.

    `any_image` lets callers name images of registries; else only templates. `egress` is the most that a sandbox
    may be given. `free_*` is what must be left on the host for a creation to be admitted.
    """

    sandboxes: int | None = None
    sandboxes_per_owner: int | None = None
    creates_per_s: float | None = None
    requests_per_s: float | None = None
    burst: int = 100
    longest_life_s: float = 24 * 3600.0
    longest_pause_s: float = 24 * 3600.0
    limits: Limits = field(default_factory=Limits)
    most: Limits = field(
        default_factory=lambda: Limits(
            cpus=64.0, memory_bytes=64 * GIB, pids=8192, disk_bytes=64 * GIB
        )
    )
    egress: Egress = Egress.NONE
    any_image: bool = True
    free_memory_bytes: int = GIB // 2
    free_disk_bytes: int = GIB
    most_load_per_core: float | None = None
    streams_per_owner: int = 2048
    repositories: Mapping[str, str] = field(default_factory=dict)
    """By name: folders of this host that callers may have in a sandbox, or that those are below."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(
                    f"{name}={value}: a service with that serves nobody; give more than 0"
                )


def allowed(spec: Spec, policy: Policy) -> Spec:
    """The spec as this service makes it for a caller; InputError for what it never does."""
    source = parse(spec.image).source
    if source not in {Source.HOST, Source.REGISTRY}:
        raise InputError(f"image {spec.image!r} names a place of this host: ask for a template")
    if source is Source.REGISTRY and not policy.any_image:
        raise InputError(f"no template {spec.image!r}, and this service takes no other images")
    if spec.limits.cpuset is not None:
        raise InputError("a caller cannot choose cores: leave the cpuset out")
    repo = None if spec.repo is None else repository(spec.repo, policy)
    limits = bounded(spec.limits, policy.most)
    return replace(spec, repo=repo, limits=limits, egress=permitted(spec.egress, policy))


def permitted(egress: Egress | Allow, policy: Policy) -> Egress | Allow:
    """What of the network is given to a caller who asks for this; InputError if that is too much."""
    if isinstance(egress, Allow) and not egress.targets:
        return Egress.NONE
    if policy.egress is Egress.NONE and egress is not Egress.NONE:
        raise InputError("this service gives sandboxes no network: start it with --egress full")
    return egress


def installed(image: str, deps: tuple[Deps, ...], policy: Policy) -> tuple[Deps, ...]:
    """What callers have installed runs code of others: in a sandbox of an image, and with the network, or not at all."""
    if image == HOST:
        text = "callers' dependencies are not installed by the host's own programs"
        raise InputError(f"{text}: name an image, or ask the operator for a template that has them")
    if policy.egress is Egress.NONE:
        text = "this service gives sandboxes no network, and so installs nothing for callers"
        raise InputError(f"{text}: ask the operator for a template that has it")
    return deps


def repository(repo: Repo, policy: Policy) -> Repo:
    """By the name the operator gave it, or by a path below one of his folders; a caller names no other place."""
    known = policy.repositories.get(repo.source)
    if known is not None:
        return replace(repo, source=known)
    plain = posixpath.normpath(repo.source)
    above = (folder.rstrip("/") for folder in policy.repositories.values())
    if plain == repo.source and any(plain == f or plain.startswith(f"{f}/") for f in above):
        return repo
    raise InputError(
        f"no repository {repo.source!r} is offered: start with --repository NAME=FOLDER"
    )


def bounded(limits: Limits, most: Limits) -> Limits:
    """No limit above the most; none at all means the most."""
    return Limits(
        cpus=_least(limits.cpus, most.cpus),
        memory_bytes=_least(limits.memory_bytes, most.memory_bytes),
        pids=_least(limits.pids, most.pids),
        disk_bytes=_least(limits.disk_bytes, most.disk_bytes),
    )


def _least(one: N | None, other: N | None) -> N | None:
    return min((value for value in (one, other) if value is not None), default=None)
