"""One workload in one sandbox: run it, touching nothing between the actions, and keep all that was seen.

Nothing is raised for what goes wrong with a sandbox: it is in the `Performance`, and `judge.py` makes the
record of it. Scripts are prepared before the first mark and digests are taken after the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from excise.clock import Clock
from excise.errors import InputError
from excise.measure import trailer
from excise.measure.record import Cell
from excise.session import Session
from excise.substrates.base import Substrate, TimesInside
from excise.tax.marks import ActionMarks
from excise.types import Observation, Spec
from excise.workloads.base import Golden, Site, Step, Workload

END_WITHIN_S = 60.0
SPARE_S = 120.0
"""What a trial may take besides its actions' own time limits before it counts as hung."""

MAX_DEADLINE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a cell needs to be run: made once, used in every block."""

    cell: Cell
    substrate: Substrate
    workload: Workload
    spec: Spec = field(default_factory=Spec)
    site: Site = field(default_factory=Site)
    tree: str | None = None
    goldens: tuple[Golden, ...] | None = None
    """Of the set-up's steps and then of the others; None: only what the author knows is checked."""

    @property
    def set_up(self) -> tuple[Step, ...]:
        """The steps of the component S."""
        return tuple(self.workload.set_up(self.site))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The actions that are counted."""
        return tuple(self.workload.steps(self.site))

    @property
    def deadline_s(self) -> float:
        """When the whole trial is given up: no time-out of any action can take it that far."""
        longest = sum(min(s.timeout_s, 60.0) for s in (*self.set_up, *self.steps))
        return min(SPARE_S + longest, MAX_DEADLINE_S)


Act = tuple[Step, ActionMarks, Observation]
Send = Callable[[Session], Awaitable[Observation]]


@dataclass(slots=True)
class Performance:
    """What was seen of one trial, however far it came."""

    planned: int
    marks: dict[str, int] = field(default_factory=dict)
    set_up: list[Act] = field(default_factory=list)
    actions: list[Act] = field(default_factory=list)
    error: Exception | None = None
    hung: bool = False

    @property
    def acted(self) -> list[Act]:
        """Everything that was answered, the set-up first, as goldens count it."""
        return [*self.set_up, *self.actions]


async def perform(
    setting: Setting,
    *,
    clock: Clock,
    nonce: str,
    due_ns: int | None = None,
    deadline_s: float | None = None,
    end_within_s: float = END_WITHIN_S,
    sending: Sequence[Send] | None = None,
) -> Performance:
    """Run the workload once, from nothing to nothing. `sending` is what `rehearse` made, if it was called."""
    set_up, steps = setting.set_up, setting.steps
    seen = Performance(planned=len(steps))
    observed: list[Observation] = []
    sending = rehearse(setting, nonce) if sending is None else sending
    limit = setting.deadline_s if deadline_s is None else deadline_s
    session = Session(
        setting.substrate, setting.spec, clock=clock, due_ns=due_ns, end_within_s=end_within_s
    )
    bound = asyncio.timeout(limit)
    try:
        async with bound:
            await _go_through(session, setting, sending, len(set_up), observed)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this trial's outcome
        seen.error, seen.hung = error, bound.expired()
    seen.marks = session.taken
    read = observed
    if not _timed(setting):
        read = [trailer.strip(o, f"{nonce}x{i}") for i, o in enumerate(observed)]
    timed = [
        ActionMarks(m.sent_ns, m.received_ns, o.inside_ns)
        for m, o in zip((*session.acted[0], *session.acted[1]), read, strict=True)
    ]
    acted = list(zip((*set_up, *steps), timed, read, strict=False))
    seen.set_up, seen.actions = acted[: len(set_up)], acted[len(set_up) :]
    return seen


def rehearse(setting: Setting, nonce: str) -> tuple[Send, ...]:
    """How each step is to be sent, ready before the first mark is taken."""
    steps = (*setting.set_up, *setting.steps)
    return tuple(_sending(setting, step, f"{nonce}x{i}") for i, step in enumerate(steps))


async def _go_through(
    session: Session,
    setting: Setting,
    sending: Sequence[Send],
    set_up: int,
    observed: list[Observation],
) -> None:
    """A set-up that fails ends the trial: what came after it would only fail too."""
    async with session:
        if set_up or setting.workload.persistent_shell:
            async with session.setting_up():
                if setting.workload.persistent_shell:
                    await session.open_shell()
                for send in sending[:set_up]:
                    observed.append(await send(session))  # noqa: PERF401 - kept if the next fails
        if all(o.ok for o in observed):
            for send in sending[set_up:]:
                observed.append(await send(session))  # noqa: PERF401


def _sending(setting: Setting, step: Step, nonce: str) -> Send:
    """How this substrate is told a step; the script is ready before the trial begins."""
    if setting.workload.persistent_shell:
        script = step.script if _timed(setting) else trailer.wrap_told(step.script, nonce)
        return lambda session: session.tell(script, timeout_s=step.timeout_s)
    action = step.action(setting.site.env)
    if not _timed(setting):
        action = trailer.wrap_action(action, nonce)
    return lambda session: session.act(action)


def _timed(setting: Setting) -> bool:
    substrate = setting.substrate
    return isinstance(substrate, TimesInside) and substrate.times_inside
