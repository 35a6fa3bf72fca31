"""Trajectories of any length, built from cycles of ten actions at a constant mix.

A cycle is `list, search, read-range, command, create, command, test-file, read-full, edit, test-fix`:
4 inspections, 2 commands, 2 edits, 2 tests. Three rules:

* a task's last cycle ends a trajectory of any length, and its edit is the gold patch, so the last action
  is the test that must pass; shorter lengths take the last cycles, longer ones begin again at the first;
* the first cycle's `create` writes the test patch, so the test exists, and fails until the end;
* a length that is no multiple of ten leaves out the first actions of the first cycle; an edit that is left
  out so is made in the set-up, because what comes later builds on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from excise.errors import InputError
from excise.tasks.descriptor import Cycle, Prepared
from excise.workloads.actions import Desk
from excise.workloads.base import Listed, Site, Step

ACTIONS_PER_CYCLE = 10
GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Turn:
    """One cycle at its place in a trajectory."""

    cycle: Cycle
    number: int
    first: bool
    last: bool


def trajectory(prepared: Prepared, length: int) -> Listed:
    """The trajectory of that many actions on a preloaded repository."""
    task = prepared.task
    if length < 1:
        raise InputError(f"a trajectory has at least one action, not {length}: try K10:{task.id}")
    if not task.cycles or task.cycles[-1].edit != GOLD:
        raise InputError(f"task {task.id} has no cycles that end in the edit `{GOLD}`: add them")
    return Listed(
        f"K{length}:{task.id}",
        partial(_steps, prepared, length),
        task=task.id,
        preloaded=True,
        make_set_up=partial(_left_out_edits, prepared, length),
    )


def turns(cycles: tuple[Cycle, ...], length: int) -> tuple[Turn, ...]:
    """Which cycles a trajectory of that length runs through, in order."""
    count = -(-length // ACTIONS_PER_CYCLE)
    skipped = max(len(cycles) - count, 0)
    chosen = [cycles[(skipped + place) % len(cycles)] for place in range(count - 1)]
    chosen.append(cycles[-1])
    return tuple(
        Turn(cycle, number=skipped + place + 1, first=place == 0, last=place == count - 1)
        for place, cycle in enumerate(chosen)
    )


def _steps(prepared: Prepared, length: int, site: Site) -> tuple[Step, ...]:
    return _whole_cycles(prepared, length, site)[-length:]


def _left_out_edits(prepared: Prepared, length: int, site: Site) -> tuple[Step, ...]:
    left_out = _whole_cycles(prepared, length, site)[:-length]
    return tuple(step for step in left_out if step.kind == "edit")


def _whole_cycles(prepared: Prepared, length: int, site: Site) -> tuple[Step, ...]:
    desk = Desk(prepared.task, site)
    chosen = turns(prepared.task.cycles, length)
    return tuple(step for turn in chosen for step in _ten(desk, prepared, turn))


def _ten(desk: Desk, prepared: Prepared, turn: Turn) -> tuple[Step, ...]:
    task, cycle, number = prepared.task, turn.cycle, turn.number
    patched = {check.path for check in task.checks}
    create, follow = (
        (desk.apply("test-patch", prepared.test_patch), desk.command("git diff --stat"))
        if turn.first
        else (desk.write_reproduction(number), desk.reproduce(number))
    )
    source = cycle.read if cycle.edit == GOLD else cycle.edit
    edit = (
        desk.apply("gold-patch", prepared.gold_patch) if turn.last else desk.comment(source, number)
    )
    return (
        desk.list_files(cycle.list),
        desk.search(cycle.search, *task.search_in),
        desk.read_range(*cycle.range),
        desk.command(cycle.command),
        create,
        follow,
        desk.test("test-file", cycle.test, exit_code=1 if cycle.test in patched else 0),
        desk.read_full(cycle.read),
        edit,
        desk.test_fix(fixed=turn.last),
    )
