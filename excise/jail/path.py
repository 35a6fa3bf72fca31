"""A spec as a path of stages, purely: base, image, dependencies, warm interpreter, repository, or a snapshot of all of it.

Dependencies stand below the repository, because they do not depend on it: all commits share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from excise.layers.key import Recipe, key_of
from excise.layers.recipe import HOST, base_recipe, deps_recipe, image_recipe, place_of, repo_recipe
from excise.pools.stage import Kind
from excise.types import Deps, Repo, Spec

SNAPSHOT = "snapshot:"

Laid: TypeAlias = tuple[str, tuple[Deps, ...], str | None, Repo | None]
"""What of a spec is layers."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a path. Its key names it and all below it."""

    kind: Kind
    key: str


def laid(spec: Spec) -> Laid:
    """What of it decides the layers."""
    return (spec.image, spec.deps, spec.warm, spec.repo)


@lru_cache(maxsize=4096)
def steps_of(wanted: Laid) -> tuple[Step, ...]:
    """Base first; InputError for what can be no layer."""
    image, deps, warm, repo = wanted
    recipes: list[tuple[Kind, Recipe]] = [(Kind.BASE, base_recipe())]
    if image.startswith(SNAPSHOT):
        recipes.append((Kind.SNAPSHOT, {"kind": "snapshot", "reference": image}))
    elif image != HOST:
        recipes.append((Kind.IMAGE, image_recipe(image)))
    recipes += [(Kind.DEPENDENCIES, deps_recipe(each)) for each in deps]
    if warm is not None:
        recipes.append((Kind.INTERPRETER, {"kind": "warm", "interpreter": warm}))
    if repo is not None:
        recipes.append((Kind.REPO, repo_recipe(repo.commit, place_of(repo))))
    return tuple(_steps(recipes))


def cut(spec: Spec, depth: int) -> Spec:
    """The spec whose path is the first `depth` stages."""
    kinds = [step.kind for step in steps_of(laid(spec))[:depth]]
    below = Kind.IMAGE in kinds or Kind.SNAPSHOT in kinds
    return replace(
        spec,
        image=spec.image if below else HOST,
        deps=spec.deps[: kinds.count(Kind.DEPENDENCIES)],
        warm=spec.warm if Kind.INTERPRETER in kinds else None,
        repo=spec.repo if Kind.REPO in kinds else None,
    )


def _steps(recipes: Sequence[tuple[Kind, Recipe]]) -> list[Step]:
    steps: list[Step] = []
    for kind, recipe in recipes:
        below = [steps[-1].key] if steps else []
        steps.append(Step(kind, key_of(recipe, below)))
    return steps
