"""The tiers: T0 a first sign of life, T1 looking around in a repository, T2 fixing a bug in a clone of it."""

from __future__ import annotations

from functools import partial

from excise.tasks.descriptor import Prepared, Task
from excise.types import Egress
from excise.workloads.actions import Desk
from excise.workloads.base import Listed, Site, Step

FLOOR_ACTIONS = 300


def t0() -> Listed:
    """One trivial action."""
    return Listed("T0", partial(_repeated, Step("command", "echo rollout-ready", what="echo"), 1))


def t0_floor() -> Listed:
    """Many times `true` in one sandbox: what dispatching an action costs when the action is nothing."""
    step = Step("command", "true", what="true")
    return Listed(f"T0x{FLOOR_ACTIONS}", partial(_repeated, step, FLOOR_ACTIONS))


def t1(prepared: Prepared) -> Listed:
    """Six inspections of a repository that is in the sandbox already."""
    task = prepared.task
    return Listed(f"T1:{task.id}", partial(_inspections, task), task=task.id, preloaded=True)


def t2(prepared: Prepared) -> Listed:
    """Clone (the set-up), inspect, then go from a failing test to a passing one: 14 actions with the clone."""
    task = prepared.task
    return Listed(
        f"T2:{task.id}",
        partial(_fix, prepared),
        task=task.id,
        egress=Egress.FULL,
        make_set_up=partial(clone, task),
    )


def clone(task: Task, site: Site) -> tuple[Step, ...]:
    """The set-up that fetches the repository over the network."""
    return (Desk(task, site).clone(),)


def _repeated(step: Step, times: int, _: Site) -> tuple[Step, ...]:
    return (step,) * times


def _inspections(task: Task, site: Site) -> tuple[Step, ...]:
    desk, look = Desk(task, site), task.inspect
    count = "find . -name '*.py' -not -path './.git/*' | wc -l"
    return (
        desk.step("inspect", "revision", "git rev-parse HEAD"),
        desk.list_files("."),
        desk.step("inspect", "count", count),
        desk.search(look.search, look.root),
        desk.search_syntax(),
        desk.read_range(look.file, look.first, look.last),
    )


def _fix(prepared: Prepared, site: Site) -> tuple[Step, ...]:
    task = prepared.task
    desk = Desk(task, site)
    files = [check.path for check in task.checks]
    failing = any(check.known_failing for check in task.checks)
    return (
        *_inspections(task, site),
        desk.apply("test-patch", prepared.test_patch),
        desk.test_fix(fixed=False),
        desk.apply("gold-patch", prepared.gold_patch),
        desk.test_fix(fixed=True),
        desk.test("test-file", *files, exit_code=1 if failing else 0),
        desk.command("git diff --stat"),
        desk.command("git status --short"),
    )
