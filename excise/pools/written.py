"""A demand and a stock that are written down, and what the planner and the scheduler make of them. Pure.

The file is JSON: what is wanted how often, what idles, who waits, and what may be used. It is decided by the
same code that runs in a pool, so what it says can be argued with before any sandbox is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from excise.errors import InputError
from excise.pools.demand import Wish
from excise.pools.plan import Idle, Plan, Stock, plan
from excise.pools.size import Budget, Copy, copies
from excise.pools.stage import Kind, Path, Stage, checked, keys_of
from excise.scheduler.assign import Match, assignment
from excise.scheduler.idle import Worker
from excise.scheduler.waiting import Wanted


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One environment: its stages, base first, as `kind:key=seconds` joined by `/`; and the demand for it."""

    path: str
    per_s: float = 0.0
    peak: float = 0.0
    expected: int = 0
    pinned: int = 0


class There(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sandbox that idles at the end of that path."""

    name: str
    path: str
    idle_s: float = 0.0


class Waits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rollout that waits for an environment."""

    name: str
    path: str
    owner: str = ""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    sandboxes: int
    memory_bytes: int | None = None
    copy_bytes: int = 0
    create_s: float = 0.0
    advance_s: float = 0.0
    held: int = 0
    wanted: tuple[Asked, ...] = ()
    idle: tuple[There, ...] = ()
    waiting: tuple[Waits, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """The copies worth keeping, most worthy first; what to do about it; and who gets what."""

    worthy: tuple[Copy, ...]
    plan: Plan
    matches: tuple[Match, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """By key of a stage: its path as it was written."""


def parse(text: bytes, *, where: str) -> Written:
    """The file's content, or one line that says what is wrong with it."""
    try:
        return msgspec.json.decode(text, type=Written)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: {error}; docs/pools.md shows such a file") from error


def decide(written: Written) -> Decided:
    """What a pool with this budget would do at this moment."""
    budget = Budget(written.sandboxes, written.memory_bytes, copy_bytes=written.copy_bytes)
    wishes = [
        Wish(path_of(each.path), each.per_s, each.peak, each.expected, each.pinned)
        for each in written.wanted
    ]
    worthy = copies(wishes, budget, create_s=written.create_s, advance_s=written.advance_s)
    there = [(each, path_of(each.path)) for each in written.idle]
    idle = tuple(Idle(each.name, path[-1].key, -each.idle_s) for each, path in there)
    made = plan(Stock(idle, held=written.held), worthy, budget, now_s=0.0)
    wanted = [Wanted(each.name, path_of(each.path), each.owner) for each in written.waiting]
    matches = assignment(wanted, [Worker(each.name, keys_of(path)) for each, path in there])
    paths = [wish.path for wish in wishes]
    names = {path[i].key: _shown(path[: i + 1]) for path in paths for i in range(len(path))}
    return Decided(worthy, made, tuple(matches), names)


def path_of(text: str) -> Path:
    """`image:a=20/repository:b=2`: each stage's kind, name and seconds. A key names all below it too."""
    stages: list[Stage] = []
    for part in text.split("/"):
        kind, colon, rest = part.partition(":")
        name, equals, price = rest.partition("=")
        try:
            seconds = float(price) if equals else 0.0
            stage = Stage(Kind(kind), f"{stages[-1].key}/{name}" if stages else name, seconds)
        except ValueError:
            colon = ""
        if not colon or not name:
            kinds = ", ".join(Kind)
            raise InputError(f"{text!r}: write stages as kind:name=seconds, the kinds are {kinds}")
        stages.append(stage)
    return checked(stages)


def _shown(path: Path) -> str:
    return path[-1].key
