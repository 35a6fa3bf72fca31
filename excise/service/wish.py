"""What a sandbox is to be: its template's environment, what was wanted of it within what is allowed, and ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from excise.errors import InputError
from excise.service.catalogue import Catalogue
from excise.service.policy import Policy, allowed, bounded, permitted, repository
from excise.service.sandbox import Wanted
from excise.service.templates import Template, peopled
from excise.types import Isolation, Observation, Spec

READY_S = 60.0
READY_POLL_S = 0.05


def template_of(
    owner: str, wanted: Wanted, templates: Catalogue, policy: Policy, isolation: Isolation
) -> Template:
    """What it is made of. Nobody is added to the users of a host that nothing stands before."""
    if wanted.spec is not None:
        return Template("", owner, allowed(wanted.spec, policy))
    template = templates.resolve(owner, wanted.template, policy)
    return template if isolation is Isolation.NONE else peopled(template, wanted.person)


def spec_of(owner: str, wanted: Wanted, spec: Spec, policy: Policy) -> Spec:
    """The template's spec with what belongs to this sandbox alone; InputError for more than is allowed."""
    labels = {**spec.labels, "owner": owner}
    spec = replace(spec, env={**spec.env, **wanted.env}, labels=labels)
    if wanted.repo is not None:
        spec = replace(spec, repo=repository(wanted.repo, policy))
    if wanted.egress is not None:
        spec = replace(spec, egress=permitted(wanted.egress, policy))
    if wanted.limits is not None:
        spec = replace(spec, limits=bounded(wanted.limits, policy.most))
    return spec


async def until_ready(ask: Callable[[], Awaitable[Observation]]) -> None:
    """What was started in a sandbox is ready when the template's script succeeds."""
    try:
        async with asyncio.timeout(READY_S):
            while not (await ask()).ok:  # noqa: ASYNC110  # asks the sandbox
                await asyncio.sleep(READY_POLL_S)
    except TimeoutError:
        text = f"the template's start command was not ready in {READY_S:g} s"
        raise InputError(text) from None
