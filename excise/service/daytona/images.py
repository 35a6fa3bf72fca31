"""Images and Dockerfiles of callers as templates, built once; and snapshots, which are templates with a state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from excise.errors import InputError
from excise.service.daytona.asked import Build, NewSandbox
from excise.service.daytona.call import Call
from excise.service.daytona.dockerfile import Plan, plan_of
from excise.service.errors import Unsupported
from excise.service.templates import Template

HIDDEN = "dockerfile-"
"""Templates of Dockerfiles that were given to `create` itself; lists do not show them."""


async def template_for(call: Call, asked: NewSandbox) -> str | None:
    """The name of what a new sandbox is made of; builds it first if it has to be built."""
    if asked.snapshot and asked.build_info:
        raise InputError("give a snapshot or an image, not both")
    if asked.build_info is None:
        return asked.snapshot or None
    plan = _plan(asked.build_info)
    if not plan.steps and plan.start is None:
        return plan.image
    template = _on(call, plan, HIDDEN)
    made_of = repr((call.owner, template.spec, template.steps, template.user, template.start))
    name = HIDDEN + hashlib.sha256(made_of.encode("utf-8", "replace")).hexdigest()[:24]
    template = replace(template, name=name, revision=name)
    known = {each.name for each in call.cloud.templates.of(call.owner)}
    if name not in known:
        await call.cloud.templates.put(template)
    await call.makings.hide(call.cloud, template)
    return name


def template_of(call: Call, name: str, build: Build | None, image: str | None) -> Template:
    """A snapshot's template: of a Dockerfile, or of an image as it is."""
    if build is not None:
        return _on(call, _plan(build), name)
    if not image:
        raise InputError("a snapshot is made of an image or of a Dockerfile")
    return _on(call, Plan(image), name)


def _plan(build: Build) -> Plan:
    if build.context_hashes:
        raise Unsupported(
            "files of a build context cannot be had here: upload them after the sandbox is created"
        )
    return plan_of(build.dockerfile_content)


def _on(call: Call, plan: Plan, name: str) -> Template:
    """The steps upon an image, or upon another template of that name."""
    base = call.cloud.templates.resolve(call.owner, plan.image, call.cloud.policy)
    spec = base.spec if base.snapshot is None else replace(base.spec, image=base.snapshot)
    return Template(
        name,
        call.owner,
        spec,
        steps=(*base.steps, *plan.steps),
        user=base.user,
        workdir=base.workdir,
        start=plan.start or base.start,
        made_s=call.cloud.wall_s(call.cloud.now_ns()),
    )


def shown(templates: list[Template]) -> Iterator[Template]:
    """Those that a list shows."""
    return (each for each in templates if not each.name.startswith(HIDDEN))
