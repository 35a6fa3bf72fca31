"""Run a recorded trajectory again in one sandbox, and compare every observation with the recorded one."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from excise.clock import Clock, SystemClock
from excise.errors import InputError, Phase, SubstrateError
from excise.measure.stock import Supplies, stock
from excise.session import Session
from excise.substrates.base import Substrate
from excise.tasks.descriptor import Prepared
from excise.tax.breakdown import Breakdown, break_down
from excise.types import Isolation, Limits, Spec
from excise.workloads.base import Listed, Site, Step, nothing
from excise.workloads.replay.agreement import Agreement, Summary, agree, summarise
from excise.workloads.replay.form import Recorded, Recording
from excise.workloads.replay.stage import installation, moved, staged

CUT_OFF = -1
"""The exit code by which recordings and replays mark a command that ran into its limit."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a recording is replayed in: a task's repository, or an image, or an empty workspace."""

    prepared: Prepared | None = None
    image: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay: agreement per action, and where the time went."""

    agreements: tuple[Agreement, ...]
    summary: Summary
    breakdown: Breakdown
    recorded_s: float | None
    """The recorded tool time of the actions that have one."""
    think_s: float | None
    """The recorded think time, whether or not it was waited for."""


async def replay(
    substrate: Substrate,
    recording: Recording,
    place: Place,
    *,
    images: Path,
    think: float = 0.0,
    unisolated: bool = False,
    clock: Clock | None = None,
    done: Callable[[Agreement], None] = lambda _: None,
) -> Replayed:
    """Replay; `think` scales the recorded think time that is waited for before each action."""
    if substrate.isolation is Isolation.NONE and not unisolated:
        raise InputError(
            f"{substrate.name} does not isolate, and a recording is somebody's commands: choose an "
            "isolating substrate, or say --unisolated"
        )
    clock = clock or SystemClock()
    spec, site = await _stocked(substrate, place, images)
    agreements: list[Agreement] = []
    async with Session(substrate, spec, clock=clock) as session:
        async with session.setting_up():
            workspace, repository = await _arrive(session, recording, place, site)
        steps = staged(recording, workspace=workspace, repository=repository, python=site.python)
        for recorded, step in zip(recording.actions, steps, strict=True):
            if think > 0 and recorded.think_s:
                await clock.sleep(think * recorded.think_s)
            agreement = await _again(session, recorded, step, (repository, recording.root))
            agreements.append(agreement)
            done(agreement)
    return Replayed(
        tuple(agreements),
        summarise(agreements),
        break_down(session.marks),
        _sum(a.recorded_s for a in recording.actions),
        _sum(a.think_s for a in recording.actions),
    )


async def _stocked(substrate: Substrate, place: Place, images: Path) -> tuple[Spec, Site]:
    if place.image is not None:
        return Spec(image=place.image, limits=place.limits), Site()
    prepared = {} if place.prepared is None else {place.prepared.task.id: place.prepared}
    task = next(iter(prepared), None)
    workload = Listed("replay", nothing, task=task, preloaded=task is not None)
    await asyncio.to_thread(images.mkdir, parents=True, exist_ok=True)
    return await stock(substrate, workload, Supplies(prepared, {}, images, place.limits))


async def _arrive(
    session: Session, recording: Recording, place: Place, site: Site
) -> tuple[str, str]:
    """Install the verbs; returns the absolute paths of the workspace and of the repository."""
    editor = (files("excise.workloads.replay") / "editor.py").read_text("utf-8")
    installed = await session.act(installation(editor, site.python).action({}))
    told = await session.act(Step("set_up", "pwd").action({}))
    if not (installed.ok and told.ok):
        raise SubstrateError(
            f"the editor verbs could not be installed: {installed.text[-200:]}",
            substrate=session.substrate.name,
            phase=Phase.SET_UP,
        )
    workspace = told.stdout.decode().strip()
    if place.prepared is not None:
        return workspace, f"{workspace}/{site.repo.path if site.repo else 'repo'}"
    there = Step("set_up", f"test -d {shlex.quote(recording.root)}").action({})
    as_recorded = place.image is not None and (await session.act(there)).ok
    return workspace, recording.root if as_recorded else workspace


async def _again(
    session: Session, recorded: Recorded, step: Step, here_there: tuple[str, str]
) -> Agreement:
    observation = await session.act(step.action({}))
    exit_code = CUT_OFF if observation.timed_out else observation.exit_code
    return agree(recorded, exit_code, moved(observation.text, *here_there))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
