"""What a jail stands on: a spec's path of layers as folders to mount, held for as long as they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError
from excise.jail.control import Bind
from excise.jail.depending import (
    Ingredients,
    interpreters,
    lay_on_host,
    lay_on_image,
    variables,
)
from excise.jail.warming import warm_up
from excise.layers.images.below import Below
from excise.layers.images.image import Image, by_name
from excise.layers.images.reference import Source, parse
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack
from excise.layers.key import key_of
from excise.layers.lay import lay, listed
from excise.layers.layer import LayerGone
from excise.layers.recipe import HOST
from excise.layers.recipes.base import ENV, host_base
from excise.layers.recipes.repo import repo_layer
from excise.layers.store import Layer, Pin, Store
from excise.layers.tree import Member
from excise.substrates.inside.habits import WORKSPACE
from excise.types import Repo, Spec
from excise.warm.layer import COLD, Warmth

_TRIES = 5
_FURNITURE = (
    *(Member(name, 0o755) for name in ("dev", "etc", "proc", "run", "sys", "var", WORKSPACE[1:])),
    *(Member(name, 0o1777) for name in ("tmp", "var/tmp")),
    Member("etc/hosts", 0o644, data=b"127.0.0.1 localhost\n::1 localhost\n"),
    Member("etc/resolv.conf", 0o644, data=b""),
)
"""Below every image: what a jail needs and some images lack."""


@dataclass(frozen=True, slots=True)
class Ground:
    """`lowers` top first; the pin keeps all of it in the store."""

    lowers: tuple[str, ...]
    binds: tuple[Bind, ...]
    env: Mapping[str, str]
    user: str
    workspace: str
    pin: Pin
    image: tuple[Layer, ...] = ()
    deps: tuple[Layer, ...] = ()
    repo: tuple[Layer, ...] = ()
    warmth: Warmth = COLD

    @property
    def digests(self) -> tuple[str, ...]:
        """The content of its layers, top first."""
        return tuple(layer.facts.digest for layer in (*self.repo, *self.deps, *self.image))

    @property
    def missing(self) -> tuple[str, ...]:
        """What should be mounted and is not there any more, because somebody removed what he should not have."""
        return tuple(lower for lower in self.lowers if not os.path.isdir(lower))  # noqa: PTH112  # at every creation


def lay_ground(spec: Spec, made: Ingredients) -> Ground:
    """Build what is not there yet, and hold it. Reads and writes disk; a second time it only looks."""
    for _ in range(_TRIES - 1):
        try:
            return _lay(spec, made)
        except LayerGone:  # removed between being built and being held
            continue
    return _lay(spec, made)


def _lay(spec: Spec, made: Ingredients) -> Ground:
    store = made.store
    if spec.image == HOST:
        base = host_base(store, interpreters(spec.deps))
        deps = lay_on_host(spec.deps, made)
        repo = _repo(store, spec.repo)
        binds = tuple(Bind(str(source), target) for source, target in base.binds)
        below = (*(layer.path for layer in deps), *base.lowers)
        env = variables(spec.deps, base.env)
        warmth = warm_up(spec, made, (*deps, *base.layers), below, binds, env)
        kept = () if warmth.layer is None else (warmth.layer,)
        pin = store.pin(*repo, *deps, *base.layers, *kept)
        named = tuple(map(str, (*(layer.path for layer in repo), *below)))
        binds = (*binds, *(Bind(*each) for each in warmth.binds))
        return Ground(named, binds, env, "", WORKSPACE, pin, base.layers, deps, repo, warmth)
    imported = store.get(imported_key(spec.image))
    if imported is not None:
        return _on_image(spec, made, (imported,), {}, "", "")
    found = _pulled(store, spec.image)
    config = found.config
    return _on_image(spec, made, found.layers, config.env, config.user, config.workdir)


def below_image(store: Store, image: str) -> tuple[Layer, ...]:
    """What a layer that is to stand on a pulled image has for parents."""
    return (_pulled(store, image).layers[0], furniture(store))


def import_archive(store: Store, reference: str, archive: Path) -> None:
    """A root file system out of a plain archive, kept under a name of its own."""
    recipe = _imported(reference)

    def make(tree: Path) -> Mapping[str, object]:
        with archive.open("rb") as packed:
            return unpack(read_entries(packed), tree, Below(()))

    store.build(key_of(recipe), recipe, make)


def imported_key(reference: str) -> str:
    return key_of(_imported(reference))


def furniture(store: Store) -> Layer:
    """The layer below every image."""
    recipe = {"kind": "furniture", "members": listed(_FURNITURE)}
    return store.build(key_of(recipe), recipe, lambda tree: lay(_FURNITURE, tree))


def _imported(reference: str) -> Mapping[str, object]:
    return {"kind": "imported", "reference": reference}


def _pulled(store: Store, image: str) -> Image:
    reference = parse(image)
    found = by_name(store, reference)
    if found is None:
        if reference.source is Source.REGISTRY and not reference.digest:
            raise InputError(f"no image {image} here: excise image pull {image}")
        raise InputError(f"no image {image} here: excise image pull '{reference}'")
    return found


def _repo(store: Store, repo: Repo | None) -> tuple[Layer, ...]:
    if repo is None:
        return ()
    at = repo.path if repo.path.startswith("/") else f"{WORKSPACE}/{repo.path}"
    return (repo_layer(store, repo.source, repo.commit, at),)


def _on_image(
    spec: Spec,
    made: Ingredients,
    image: tuple[Layer, ...],
    env: Mapping[str, str],
    user: str,
    workdir: str,
) -> Ground:
    store = made.store
    below = (*image, furniture(store))
    deps = lay_on_image(spec.deps, made, (image[0], below[-1]), env)
    repo = _repo(store, spec.repo)
    layers = (*repo, *deps, *below)
    told = variables(spec.deps, {**ENV, **env})
    stood_on = (*deps, *below)
    warmth = warm_up(spec, made, stood_on, [layer.path for layer in stood_on], (), told)
    kept = () if warmth.layer is None else (warmth.layer,)
    return Ground(
        tuple(str(layer.path) for layer in layers),
        tuple(Bind(*each) for each in warmth.binds),
        told,
        user,
        workdir if workdir not in {"", "/"} else WORKSPACE,
        store.pin(*layers, *kept),
        image,
        deps,
        repo,
        warmth,
    )
