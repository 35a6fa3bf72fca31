"""Builds under way and those that ended lately: who asked, what they said, and how they came out."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from excise.errors import ExciseError
from excise.service.builds import BuildFailed
from excise.service.cloud import Cloud
from excise.service.e2b.entries import moment_s
from excise.service.e2b.naming import OF_THE_BASE
from excise.service.e2b.recipe import Recipe
from excise.service.errors import Conflict
from excise.service.problems import problem_of
from excise.service.templates import Template, outcome
from excise.types import Limits, Spec

MOST_BUILDS = 1000
MOST_LINES = 10_000
LONGEST_LINE = 4096


@dataclass(slots=True)
class Build:
    """One build. `names` are those that lead to it once it is done."""

    owner: str
    template_id: str
    names: tuple[str, ...]
    limits: Limits
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "waiting"
    lines: list[dict[str, Any]] = field(default_factory=list)
    reason: dict[str, Any] | None = None
    task: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, text: str, level: str = "info") -> None:
        if len(self.lines) < MOST_LINES:
            at = moment_s(time.time())
            self.lines.append({"timestamp": at, "level": level, "message": text[:LONGEST_LINE]})

    @property
    def over(self) -> bool:
        return self.status in {"ready", "error"}


class Building:
    """All builds that are remembered."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._known: OrderedDict[str, Build] = OrderedDict()

    def open(self, owner: str, names: tuple[str, ...], limits: Limits) -> Build:
        """A build that is asked for, and what is to be built not said yet."""
        family = names[0].partition(":")[0]
        known = (each for each in self._cloud.templates.of(owner) if each.owner == owner)
        same = next((each.id for each in known if each.name in {family, *names}), None)
        build = Build(owner, same or secrets.token_hex(10), names, limits)
        self._known[build.id] = build
        for old in list(self._known.values()):
            if len(self._known) <= MOST_BUILDS:
                break
            if old.task is None or old.task.done():
                del self._known[old.id]
        return build

    def find(self, owner: str, template_id: str, build_id: str) -> Build:
        build = self._known.get(build_id)
        if build is None or build.owner != owner or build.template_id != template_id:
            raise FileNotFoundError(2, f"there is no build {build_id[:80]} of {template_id[:80]}")
        return build

    def start(self, build: Build, recipe: Recipe, spec_of: Callable[[Limits], Spec]) -> None:
        """Begin it. It goes on whether or not anybody asks how far it is."""
        if build.task is not None:
            raise Conflict(f"build {build.id} was started already")
        template = self._template(build, recipe, spec_of)
        outcome(template)
        build.status = "building"
        build.task = asyncio.create_task(self._make(build, template, recipe))

    def _template(
        self, build: Build, recipe: Recipe, spec_of: Callable[[Limits], Spec]
    ) -> Template:
        made_s = time.time()
        name, id_, revision = build.names[0], build.template_id, build.id
        if recipe.template is None:
            spec = spec_of(build.limits)
            return Template(
                name, build.owner, spec, recipe.steps, start=recipe.start, ready=recipe.ready,
                id=id_, revision=revision, made_s=made_s,
            )  # fmt: skip
        below = (
            self._cloud.templates.resolve(build.owner, None, self._cloud.policy)
            if recipe.template in OF_THE_BASE
            else self._cloud.templates.find(build.owner, recipe.template)
        )
        spec = replace(below.spec, limits=build.limits)
        if below.snapshot is not None:
            spec = replace(spec, image=below.snapshot, user=below.labels.get("user"))
        return replace(
            below, name=name, owner=build.owner, spec=spec, snapshot=None,
            steps=(*below.steps, *recipe.steps), start=recipe.start or below.start,
            ready=recipe.ready or below.ready, id=id_, revision=revision, made_s=made_s,
        )  # fmt: skip

    async def _make(self, build: Build, template: Template, recipe: Recipe) -> None:
        before = len(template.steps) - len(recipe.steps)
        try:
            await self._cloud.builds.prepared(template, build.say)
            await self._cloud.templates.put(template)
            for name in build.names[1:]:
                await self._cloud.templates.put(
                    replace(template, name=name, id=secrets.token_hex(10))
                )
        except Exception as error:  # noqa: BLE001  # told to whoever asks how it went
            said = str(error) if isinstance(error, ExciseError) else problem_of(error).message
            build.reason = {"message": said}
            step = error.step if isinstance(error, BuildFailed) else None
            if step is not None and 0 < step - before <= len(recipe.origins):
                origin = recipe.origins[step - before - 1]
                build.reason["step"] = str(origin) if origin else "base"
            build.say(said, "error")
            build.status = "error"
        else:
            build.status = "ready"
        finally:
            build.news.set()
