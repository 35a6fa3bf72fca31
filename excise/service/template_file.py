"""Templates for everybody, from the operator's file: TOML, one table for each, in the words of the native API.

[attrs]
spec = { image = "python:3.11" }
user = "user"
steps = [{ do = "run", words = ["pip install attrs"] }]
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from excise.errors import InputError
from excise.service.templates import Do, Step, Template, checked_name, outcome
from excise.substrates.remote.convert import spec_of
from excise.substrates.remote.wire import TemplateWire
from excise.types import Limits, Spec


def templates_of(path: Path) -> list[Template]:
    """All of a file; InputError names the one that makes no sense."""
    try:
        tables = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[str, object]])
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path}: {error}") from error
    return [_template(path, name, said) for name, said in tables.items()]


def _template(path: Path, name: str, said: dict[str, object]) -> Template:
    try:
        wire = msgspec.convert({**said, "name": name}, TemplateWire)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}, template {name}: {error}") from error
    spec = Spec() if wire.spec is None else spec_of(wire.spec, Limits())
    spec = Spec(spec.image, spec.repo, spec.limits, spec.egress, wire.env, spec.user)
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
