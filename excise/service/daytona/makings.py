"""Templates that are being made, watched by whoever asks for them, and the Dockerfiles that each owner used last."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from excise.errors import InputError
from excise.service.cloud import Cloud
from excise.service.problems import problem_of
from excise.service.sandbox import Wanted
from excise.service.templates import Template

MOST_HIDDEN = 200
"""Dockerfiles of one owner that stay built."""

LOG_LINES = 2000
LIFE_S = 30.0


@dataclass(eq=False, slots=True)
class Making:
    """A template that is being built, or how that ended."""

    template: Template
    task: asyncio.Task[None]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    written: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0
    """How often somebody asked how it stands."""

    @property
    def state(self) -> str:
        if not self.task.done():
            return "building" if self.template.steps else "pulling"
        return (
            "active" if self.error is None else "build_failed" if self.template.steps else "error"
        )

    @property
    def error(self) -> str | None:
        if not self.task.done() or self.task.cancelled():
            return "it was removed" if self.task.done() else None
        failed = self.task.exception()
        return None if failed is None else problem_of(failed).message

    def log(self, line: str) -> None:
        self.lines.append(line)
        self.written += 1
        self.news.set()


class Makings:
    """All that is being made, and the Dockerfiles that every owner used last."""

    def __init__(self) -> None:
        self._all: dict[str, Making] = {}
        self._hidden: dict[str, OrderedDict[str, None]] = {}

    def of(self, template: Template) -> Making | None:
        return self._all.get(template.id)

    def make(self, cloud: Cloud, template: Template) -> Making:
        """Build it, or see that its image can be had; whoever asks can watch."""
        making = Making(template, asyncio.create_task(self._make(cloud, template)))
        self._all[template.id] = making
        making.task.add_done_callback(lambda _: making.news.set())
        return making

    async def forget(self, template: Template) -> None:
        making = self._all.pop(template.id, None)
        if making is not None:
            making.task.cancel()
            await asyncio.gather(making.task, return_exceptions=True)

    async def _make(self, cloud: Cloud, template: Template) -> None:
        def log(line: str) -> None:
            self._all[template.id].log(line)

        if template.needs_building:
            await cloud.builds.prepared(template, log)
            return
        log(f"FROM {template.spec.image}")
        wanted = Wanted(template=template.id, lifetime_s=LIFE_S, door="daytona")
        box = await cloud.create(template.owner or "", wanted)
        await cloud.destroy(box)

    async def hide(self, cloud: Cloud, template: Template) -> None:
        """Keep a Dockerfile's template for the next that give the same one; those used longest ago go."""
        assert template.owner is not None
        mine = self._hidden.setdefault(template.owner, OrderedDict())
        mine[template.name] = None
        mine.move_to_end(template.name)
        while len(mine) > MOST_HIDDEN:
            oldest, _ = mine.popitem(last=False)
            with contextlib.suppress(InputError):
                await cloud.templates.remove(template.owner, oldest)
