"""What a sandbox is to be: its template's environment, what was wanted of it within what is allowed, and ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from excise.errors import InputError
from excise.layers.recipe import SYSTEM, place_of
from excise.service.builds import Prepared
from excise.service.catalogue import Catalogue
from excise.service.policy import Policy, allowed, bounded, installed, permitted, repository
from excise.service.sandbox import Wanted
from excise.service.templates import Do, Step, Template, is_staged, peopled
from excise.types import Isolation, Observation, Spec

READY_S = 60.0
READY_POLL_S = 0.05
_PROFILE = "mkdir -p /etc/profile.d && echo 'PATH={}:$PATH' > /etc/profile.d/excise-stages.sh"
"""Login shells of many images set PATH anew."""


def template_of(
    owner: str, wanted: Wanted, templates: Catalogue, policy: Policy, isolation: Isolation
) -> Template:
    """What it is made of. Nobody is added to the users of a host that nothing stands before.

    What has dependencies or a repository stays a path of stages, for pools to keep ready at each: see `moved_in`.
    """
    if wanted.spec is not None:
        return Template("", owner, allowed(wanted.spec, policy))
    template = templates.resolve(owner, wanted.template, policy)
    laid = wanted.repo or wanted.deps
    if laid and (template.needs_building or template.snapshot):
        text = f"template {template.name} has steps of its own: dependencies and repositories are laid on plain images"
        raise InputError(text)
    if laid or is_staged(template) or isolation is Isolation.NONE:
        return template
    return peopled(template, wanted.person)


def spec_of(owner: str, wanted: Wanted, spec: Spec, policy: Policy) -> Spec:
    """The template's spec with what belongs to this sandbox alone; InputError for more than is allowed."""
    labels = {**spec.labels, "owner": owner}
    spec = replace(spec, env={**spec.env, **wanted.env}, labels=labels)
    if wanted.repo is not None:
        spec = replace(spec, repo=repository(wanted.repo, policy))
    if wanted.deps:
        spec = replace(spec, deps=installed(spec.image, wanted.deps, policy))
    if wanted.egress is not None:
        spec = replace(spec, egress=permitted(wanted.egress, policy))
    if wanted.limits is not None:
        spec = replace(spec, limits=bounded(wanted.limits, policy.most))
    return spec


def moved_in(wanted: Wanted, prepared: Prepared, spec: Spec, isolation: Isolation) -> Prepared:
    """On a path of stages, the person is entered into each sandbox, and one stands in the repository.

    Who acts unless somebody is named is root: all that stages hold is root's. A host that nothing stands before is
    left as it is.
    """
    if wanted.person is None or prepared.stand.user or not (spec.repo or spec.deps):
        return prepared
    if isolation is Isolation.NONE:
        return prepared
    stand, steps = prepared.stand, list(prepared.left)
    if spec.repo is not None:
        stand = replace(stand, workdir=stand.workdir or place_of(spec.repo))
    if paths := [f"{deps.path}/bin" for deps in spec.deps if deps.installer != SYSTEM]:
        steps.append(Step(Do.RUN, (_PROFILE.format(":".join(reversed(paths))),)))
    steps.append(Step(Do.USER, (wanted.person,)))
    return replace(prepared, stand=stand, left=tuple(steps))


async def until_ready(ask: Callable[[], Awaitable[Observation]]) -> None:
    """What was started in a sandbox is ready when the template's script succeeds."""
    try:
        async with asyncio.timeout(READY_S):
            while not (await ask()).ok:  # noqa: ASYNC110  # asks the sandbox
                await asyncio.sleep(READY_POLL_S)
    except TimeoutError:
        text = f"the template's start command was not ready in {READY_S:g} s"
        raise InputError(text) from None
