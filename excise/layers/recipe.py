"""An environment as a path of layers: what a Spec asks for, as recipes, the lowest first.

Two specs have in common what the beginnings of their paths have in common: that much of one is ready for the other.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from excise.errors import InputError
from excise.layers.key import Recipe
from excise.layers.recipes.requirements import pinned
from excise.types import Deps, Repo, Spec

SYSTEM = "apt"
INSTALLERS = ("pip", "uv", SYSTEM)

HOST = "host"
"""The image that is this host's own programs."""

WORKSPACE = "work"
"""Where relative paths of actions count from, at the root of every environment."""

_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def plan(spec: Spec) -> tuple[Recipe, ...]:
    """The recipes of the layers that `spec` stands on; limits, egress, user and env are bound later."""
    image = base_recipe() if spec.image == HOST else image_recipe(spec.image)
    deps = tuple(deps_recipe(each) for each in spec.deps)
    if spec.repo is None:
        return (image, *deps)
    return (image, *deps, repo_recipe(spec.repo.commit, place_of(spec.repo)))


def base_recipe() -> Recipe:
    """This host's own programs, by reference."""
    return {"kind": "base", "of": HOST}


def image_recipe(reference: str) -> Recipe:
    """An image; its own layers are keyed by their content once it is pulled."""
    if not reference.strip():
        raise InputError(f"an image has a name; {HOST} is this host's own programs")
    return {"kind": "image", "reference": reference}


def repo_recipe(commit: str, at: str) -> Recipe:
    """Where the commit comes from is no part of it: a full commit id is the same files everywhere."""
    if not _FULL.fullmatch(commit):
        raise InputError(f"{commit!r} is no full commit id: `git rev-parse {commit}` tells it")
    return {"kind": "repo", "commit": commit, "at": settled(at)}


def deps_recipe(deps: Deps) -> Recipe:
    """What is asked for; the interpreter that is found and the layers below decide the rest."""
    if deps.installer not in INSTALLERS:
        raise InputError(f"no installer {deps.installer!r}; there are {', '.join(INSTALLERS)}")
    if deps.installer == SYSTEM:
        return {"kind": "deps", "installer": SYSTEM, "packages": sorted(set(deps.requirements))}
    return {
        "kind": "deps",
        "installer": deps.installer,
        "at": settled(deps.path),
        "python": deps.python,
        "requirements": list(pinned(deps.requirements)),
    }


def settled(at: str) -> str:
    """A place in an environment in its one spelling; InputError for what could be outside of it."""
    parts = PurePosixPath(at).parts
    if len(parts) < 2 or parts[0] != "/" or ".." in parts or "\0" in at:
        raise InputError(f"{at!r} is no place in an environment: an absolute path without `..` is")
    return str(PurePosixPath(*parts))


def place_of(repo: Repo) -> str:
    """Where the repository stands: its path counts from the workspace unless it is absolute."""
    return repo.path if repo.path.startswith("/") else f"/{WORKSPACE}/{repo.path}"
