"""What a template's name and a sandbox's metadata ask for, so that an unmodified client reaches any environment.

    Sandbox.create("python:3.12?repo=attrs&commit=3f3f2f9&deps=pytest,hypothesis")
    Sandbox.create("base", metadata={"excise.repo": "attrs", "excise.commit": "3f3f2f9"})

Before the question mark stands a template or an image. What the name says goes before what the metadata says.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import parse_qsl

from excise.errors import InputError
from excise.service.templates import Do, Step, Template

PREFIX = "excise."
OF_THE_BASE = frozenset({"", "base", "e2bdev/base", "e2bdev/base:latest"})
"""What the SDKs call the template that everybody has."""

_KNOWN = frozenset({"image", "repo", "commit", "path", "deps"})


@dataclass(frozen=True, slots=True)
class Environment:
    """A path of stages: a template or image, dependencies, a repository at a commit."""

    template: str | None
    repo: str | None = None
    commit: str | None = None
    path: str = "repo"
    deps: tuple[str, ...] = ()


def environment_of(name: str, metadata: Mapping[str, str]) -> Environment:
    """What is asked for; InputError for what does not add up."""
    bare, mark, query = name.partition("?")
    said = {
        key.removeprefix(PREFIX): value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and value
    }
    if mark:
        said |= dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20))
    if unknown := said.keys() - _KNOWN:
        known = ", ".join(sorted(_KNOWN))
        raise InputError(f"{', '.join(sorted(unknown))[:80]}: an environment is named by {known}")
    template = said.get("image") if bare in OF_THE_BASE and said.get("image") else bare
    repo, commit = said.get("repo"), said.get("commit")
    if (repo is None) != (commit is None):
        raise InputError("an environment with a repository names its commit, too: repo=, commit=")
    deps = tuple(shlex.split(said.get("deps", "").replace(",", " ")))
    if any(each.startswith("-") for each in deps):
        raise InputError("deps are requirements, as pip takes them, without options")
    return Environment(
        None if template in OF_THE_BASE else template, repo, commit, said.get("path", "repo"), deps
    )


def with_dependencies(below: Template, deps: tuple[str, ...], owner: str) -> Template:
    """A template with these installed. The same for the same, so that it is built once and kept ready."""
    script = f"python3 -m pip install --quiet --no-input {shlex.join(deps)}"
    recipe = "\0".join((below.revision, *deps)).encode()
    digest = sha256(recipe).hexdigest()[:20]
    steps = (*below.steps, Step(Do.USER, ("root",)), Step(Do.RUN, (script,)))
    before = below.user or next(
        (step.words[0] for step in reversed(below.steps) if step.do is Do.USER), None
    )
    if before is not None:
        steps = (*steps, Step(Do.USER, (before,)))
    return replace(
        below, name=f"deps/{digest}", owner=owner, steps=steps, id=digest, revision=digest
    )
