"""Templates for everybody, from the operator's file: TOML, one table for each, in the words of the native API.

[attrs]
spec = { image = "python:3.11" }
user = "user"
steps = [{ do = "run", words = ["pip install attrs"] }]

What a table says of `deps` and `apt`, exact versions and system packages, stays a stage that pools can keep ready:

[attrs-at-work]
spec = { image = "python:3.11", repo = { source = "/srv/attrs", commit = "3f3f2f9..." } }
deps = ["attrs==25.3.0", "pytest==9.0.1"]
python = "/usr/local/bin/python3"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from excise.errors import InputError
from excise.layers.recipe import SYSTEM
from excise.service.templates import Do, Step, Template, checked_name, outcome
from excise.substrates.remote.convert import spec_of
from excise.substrates.remote.wire import TemplateWire
from excise.types import Deps, Limits, Spec


class Table(TemplateWire, omit_defaults=True):
    """What only an operator may say."""

    deps: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    python: str | None = None


def templates_of(path: Path) -> list[Template]:
    """All of a file; InputError names the one that makes no sense."""
    try:
        tables = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[str, object]])
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path}: {error}") from error
    return [_template(path, name, said) for name, said in tables.items()]


def _template(path: Path, name: str, said: dict[str, object]) -> Template:
    try:
        wire = msgspec.convert({**said, "name": name}, Table)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}, template {name}: {error}") from error
    spec = Spec() if wire.spec is None else spec_of(wire.spec, Limits())
    spec = Spec(spec.image, spec.repo, spec.limits, spec.egress, wire.env, spec.user)
    spec = replace(spec, deps=tuple(_deps(wire)))
    steps = tuple(Step(Do(step.do), tuple(step.words), step.files) for step in wire.steps)
    template = Template(
        checked_name(name),
        None,
        spec,
        steps,
        wire.user,
        wire.workdir,
        wire.start,
        public=True,
        id=f"template-{name}",
    )
    outcome(template)
    return template


def _deps(table: Table) -> Iterator[Deps]:
    """System packages below Python's."""
    if table.apt:
        yield Deps(table.apt, installer=SYSTEM)
    if table.deps:
        deps = Deps(table.deps)
        yield deps if table.python is None else replace(deps, python=table.python)
