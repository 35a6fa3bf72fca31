"""The dependencies of a spec as layers: made on the host for its own programs, else in a jail of the image."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError
from excise.jail.runner import JailRunner
from excise.jail.spawner import Spawner
from excise.layers.recipe import SYSTEM, deps_recipe
from excise.layers.recipes.base import ENV, USR
from excise.layers.recipes.deps import python_layer, system_layer
from excise.layers.runner import HostRunner, Runner
from excise.layers.store import Layer, Store
from excise.types import Deps

_INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL")
"""Of our own environment: where an installation in an image finds its packages."""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What dependencies are made with. `spawner` is called only where one is needed."""

    store: Store
    spawner: Callable[[], Spawner]


def lay_on_host(wanted: Sequence[Deps], made: Ingredients) -> tuple[Layer, ...]:
    """On this host's own programs, by its own interpreter; one on top of another."""
    layers = []
    for deps in wanted:
        deps_recipe(deps)
        if deps.installer == SYSTEM:
            raise InputError(
                "the host's own programs take no system packages: name an image that has apt"
            )
        if shutil.which(deps.python) is None:
            raise InputError(f"{deps.python} is no program of this host: name its interpreter")
        layers.append(_python(deps, made.store, (), HostRunner()))
    return tuple(reversed(layers))


def lay_on_image(
    wanted: Sequence[Deps],
    made: Ingredients,
    below: Sequence[Layer],
    env: Mapping[str, str],
) -> tuple[Layer, ...]:
    """In a jail of the image, which reaches the package index; each stands on the one before."""
    layers: list[Layer] = []
    for deps in wanted:
        deps_recipe(deps)
        index = {name: os.environ[name] for name in _INDEX if name in os.environ}
        runner = JailRunner(made.spawner(), env={**ENV, **env, **index})
        parents = (layers[-1],) if layers else tuple(below)
        if deps.installer == SYSTEM:
            made_one = system_layer(made.store, deps.requirements, parents=parents, runner=runner)
        else:
            made_one = _python(deps, made.store, parents, runner)
        layers.append(made_one)
    return tuple(reversed(layers))


def variables(wanted: Sequence[Deps], env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the programs of virtual environments come first, the last one's before all."""
    told = dict(env)
    for deps in wanted:
        if deps.installer != SYSTEM:
            told["VIRTUAL_ENV"] = deps.path
            told["PATH"] = f"{deps.path}/bin:{told.get('PATH', ENV['PATH'])}"
    return told


def interpreters(wanted: Sequence[Deps]) -> tuple[Path, ...]:
    """Where interpreters are installed that the base of this host does not show by itself."""
    programs = (shutil.which(deps.python) for deps in wanted if deps.installer != SYSTEM)
    prefixes = (Path(found).resolve().parent.parent for found in programs if found is not None)
    return tuple(dict.fromkeys(p for p in prefixes if not p.is_relative_to(USR)))


def _python(deps: Deps, store: Store, parents: Sequence[Layer], runner: Runner) -> Layer:
    return python_layer(
        store,
        deps.requirements,
        deps.path,
        python=deps.python,
        installer=deps.installer,
        parents=parents,
        runner=runner,
    )
