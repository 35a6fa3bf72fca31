"""What sandboxes are made of, by name: an image, steps upon it, and how it is used. Values only.

A template with steps is built once: a sandbox is made of its image, the steps are run in it, and a snapshot of that
is what sandboxes are made of from then on, so that pools keep them ready like any other image.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from excise.errors import InputError
from excise.types import Spec

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}")


class Do(StrEnum):
    """The kinds of steps; a build file of either door is put into these words."""

    RUN = "run"
    COPY = "copy"
    ENV = "env"
    EXPAND = "expand"
    WORKDIR = "workdir"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. RUN has a script; COPY a destination, an optional mode, and `files`, the digest of an archive that
    was uploaded; ENV names and values by turns; EXPAND the same, with values in which the sandbox's own
    shell replaces what begins with `$`; WORKDIR and USER one word.
    """

    do: Do
    words: tuple[str, ...]
    files: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """`owner` None is the operator's, for everybody to use. `snapshot` holds what a built one is made of."""

    name: str
    owner: str | None = None
    spec: Spec = field(default_factory=Spec)
    steps: tuple[Step, ...] = ()
    user: str | None = None
    workdir: str | None = None
    start: str | None = None
    """A script that runs in every sandbox of it from the beginning."""
    ready: str | None = None
    """A script that succeeds once that one is ready to be used."""
    public: bool = False
    id: str = field(default_factory=lambda: secrets.token_hex(10))
    revision: str = field(default_factory=lambda: secrets.token_hex(10))
    made_s: float = 0.0
    snapshot: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def seen_by(self, owner: str) -> bool:
        return self.public or self.owner in {None, owner}

    @property
    def needs_building(self) -> bool:
        return self.snapshot is None and bool(self.steps or self.user)


def checked_name(name: str) -> str:
    """A name that may be given to a template."""
    if not _NAME.fullmatch(name):
        raise InputError(f"a template's name is letters, digits and . _ : / @ -, not {name[:80]!r}")
    return name


@dataclass(frozen=True, slots=True)
class Stand:
    """Who a step acts as, where, and with which variables: what the steps before it have said."""

    user: str | None = None
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def after(self, step: Step) -> Stand:
        """What holds after a step that only says how to go on."""
        match step.do, step.words:
            case Do.USER, (user,):
                return replace(self, user=user)
            case Do.WORKDIR, (place,):
                base = self.workdir or "/"
                return replace(self, workdir=place if place.startswith("/") else f"{base}/{place}")
            case ((Do.ENV | Do.EXPAND), words) if len(words) % 2 == 0:
                return replace(
                    self, env={**self.env, **dict(zip(words[::2], words[1::2], strict=True))}
                )
            case ((Do.RUN | Do.COPY), (_, *_)):
                return self
        raise InputError(f"a {step.do} step cannot say {' '.join(step.words)[:100]!r}")


def is_staged(template: Template) -> bool:
    """Whether it is a path of stages and nothing more, so that pools can keep sandboxes ready at any of them."""
    on_stages = template.spec.repo is not None or bool(template.spec.deps)
    return on_stages and not template.needs_building and template.snapshot is None


def peopled(template: Template, person: str | None) -> Template:
    """The template with somebody who acts in its sandboxes by default, unless it has one already."""
    if person is None or template.labels.get("user") or outcome(template).user is not None:
        return template
    return replace(template, user=person, revision=f"{template.revision} {person}")


def outcome(template: Template) -> Stand:
    """What holds in a sandbox of that template."""
    stand = Stand(template.user, template.workdir, template.spec.env)
    for step in template.steps:
        stand = stand.after(step)
    return stand
