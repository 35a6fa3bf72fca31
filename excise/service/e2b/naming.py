"""What a template's name and a sandbox's metadata ask for, so that an unmodified client reaches any environment.

    Sandbox.create("python:3.12?repo=attrs&commit=3f3f2f9...&deps=attrs==25.3.0,pytest==9.0.1,...")
    Sandbox.create("base", metadata={"excise.repo": "attrs", "excise.commit": "3f3f2f9..."})

Before the question mark stands a template or an image. What the name says goes before what the metadata says. All of it
is a path of stages, so that pools keep sandboxes ready at any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from excise.errors import InputError
from excise.layers.recipe import SYSTEM
from excise.types import Deps, Repo

PREFIX = "excise."
OF_THE_BASE = frozenset({"", "base", "e2bdev/base", "e2bdev/base:latest"})
"""What the SDKs call the template that everybody has."""

_KNOWN = frozenset({"image", "repo", "commit", "path", "deps", "apt", "python"})


@dataclass(frozen=True, slots=True)
class Environment:
    """A path of stages: a template or image, dependencies, a repository at a commit."""

    template: str | None
    repo: Repo | None = None
    deps: tuple[Deps, ...] = ()


def environment_of(name: str, metadata: Mapping[str, str]) -> Environment:
    """What is asked for; InputError for what does not add up."""
    bare, mark, query = name.partition("?")
    said = {
        key.removeprefix(PREFIX): value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and value
    }
    if mark:
        said |= _asked(query)
    if unknown := said.keys() - _KNOWN:
        known = ", ".join(sorted(_KNOWN))
        raise InputError(f"{', '.join(sorted(unknown))[:80]}: an environment is named by {known}")
    template = said.get("image") if bare in OF_THE_BASE and said.get("image") else bare
    return Environment(None if template in OF_THE_BASE else template, _repo(said), _deps(said))


def _asked(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise InputError("more is asked of that template than an environment has") from None


def _repo(said: Mapping[str, str]) -> Repo | None:
    source, commit = said.get("repo"), said.get("commit")
    if source is None and commit is None:
        return None
    if source is None or commit is None:
        raise InputError("an environment with a repository names its commit, too: repo=, commit=")
    repo = Repo(source, commit)
    return replace(repo, path=said["path"]) if "path" in said else repo


def _deps(said: Mapping[str, str]) -> tuple[Deps, ...]:
    """System packages below Python's."""
    system, packages = _listed(said.get("apt", "")), _listed(said.get("deps", ""))
    found = [Deps(system, installer=SYSTEM)] if system else []
    if packages:
        deps = Deps(packages)
        found.append(replace(deps, python=said["python"]) if "python" in said else deps)
    return tuple(found)


def _listed(text: str) -> tuple[str, ...]:
    words = tuple(text.replace(",", " ").split())
    if any(each.startswith("-") for each in words):
        raise InputError("dependencies are names and versions, without options")
    return words
