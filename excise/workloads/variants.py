"""Variants of a workload, named after a plus sign and freely combined: `K150:attrs-1417+arc+chatty`.

* `arc`: the same actions in another order: first look, then edit, then test; the gold edit and the test
  that must pass stay last, so every action keeps its known exit code.
* `faulty` (`faulty=30`): one action in twenty fails: a missing file, a syntax error, and one that runs into
  a time limit of that many seconds (2 unless told) with a child that holds its output.
* `chatty`: one action in ten prints a megabyte.
* `session`: one persistent shell; directory and environment are set once.
* `clone`: the repository is cloned as the set-up instead of being there.

Faults and chatter take the place of actions that change nothing, chosen by the digest of a seed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from excise.errors import InputError
from excise.tasks.descriptor import Prepared
from excise.types import Egress
from excise.workloads import tiers
from excise.workloads.base import Listed, Site, Step

Steps = Callable[[Site], tuple[Step, ...]]

TIME_LIMIT_S = 2.0
FAULTY_ONE_IN = 20
CHATTY_ONE_IN = 10
MEGABYTE = "seq -f '%015.0f' 1 62500"
REPLACED = frozenset({"fault", "chatter"})
LATE_ACTIONS = 2
"""The gold edit and the test that must pass."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What a variant does to a workload; the number is what stands after `=`, where it takes one."""

    apply: Callable[[Listed, Prepared | None, float | None], Listed]
    takes_number: bool = False


def vary(workload: Listed, names: Sequence[str], prepared: Prepared | None) -> Listed:
    """The workload under those variants; whatever their order, they act in the order of the table."""
    numbers: dict[str, float | None] = {}
    for name in names:
        key, equals, number = name.partition("=")
        if key not in VARIANTS:
            known = ", ".join(VARIANTS)
            raise InputError(f"unknown variant {key!r} of {workload.name}; known: {known}")
        if key in numbers:
            raise InputError(f"variant {key!r} of {workload.name} is named twice")
        if equals and not VARIANTS[key].takes_number:
            raise InputError(f"variant {key!r} takes no number: write {workload.name}+{key}")
        numbers[key] = _seconds(name, number) if equals else None
    varied = workload
    for key, variant in VARIANTS.items():
        if key in numbers:
            varied = variant.apply(varied, prepared, numbers[key])
    return replace(varied, name="+".join((workload.name, *names)))


def _seconds(name: str, number: str) -> float:
    try:
        seconds = float(number)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise InputError(
            f"variant {name!r}: give seconds above 0 and up to 3600, such as faulty=30"
        )
    return seconds


def arc(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Inspections first, edits and commands in the middle, tests late: a permutation."""
    phases = {"inspect": 0, "command": 1, "edit": 1, "test": 2}
    body, late = steps[:-LATE_ACTIONS], steps[-LATE_ACTIONS:]
    return (*sorted(body, key=lambda step: phases.get(step.kind, 1)), *late)


def faulty(
    steps: tuple[Step, ...], *, limit_s: float = TIME_LIMIT_S, seed: int = 0
) -> tuple[Step, ...]:
    """One step in twenty, and at least one, replaced by one that fails."""
    places = _chosen(steps, FAULTY_ONE_IN, f"faulty:{seed}")
    faulted = list(steps)
    for number, place in enumerate(places):
        faulted[place] = _fault(steps[place], number, limit_s)
    return tuple(faulted)


def chatty(steps: tuple[Step, ...], *, seed: int = 0) -> tuple[Step, ...]:
    """One step in ten, and at least one, replaced by one that prints a megabyte."""
    chattering = list(steps)
    for place in _chosen(steps, CHATTY_ONE_IN, f"chatty:{seed}"):
        chattering[place] = replace(steps[place], script=MEGABYTE, what="chatter")
    return tuple(chattering)


def in_session(step: Step) -> Step:
    """The step as a persistent shell takes it: output merged, directory and environment inherited.

    A substrate's own time limit would take the shell with it, so a step that is meant to run into its limit
    runs under `timeout` (code 124) instead.
    """
    if step.times_out:
        limited = f"timeout {step.timeout_s:g} bash -c {shlex.quote(step.script)}"
        step = replace(step, script=limited, exit_code=124, timeout_s=60.0 + step.timeout_s)
    script = f"{{ {step.script}\n}} 2>&1"
    return replace(step, script=script, cwd=None, env={}, times_out=False)


def _chosen(steps: tuple[Step, ...], one_in: int, seed: str) -> list[int]:
    """Which steps give way, in order: only such as change nothing and were not replaced before."""
    harmless = [
        place
        for place, step in enumerate(steps)
        if step.kind in ("inspect", "command") and step.what not in REPLACED
    ]
    harmless.sort(key=lambda place: sha256(f"{seed}:{place}".encode()).digest())
    return sorted(harmless[: -(-len(steps) // one_in)])


def _fault(step: Step, number: int, limit_s: float) -> Step:
    """The first fault is a missing file, the second a syntax error, the third the time-out; then as before."""
    if number == 2:
        hang = "sleep 86400 & sleep 86400"
        return replace(
            step, script=hang, what="fault", exit_code=None, timeout_s=limit_s, times_out=True
        )
    missing = f"cat missing_{number}.py"
    script = missing if number % 2 == 0 else "bash -c 'if then'"
    return replace(step, script=script, what="fault", exit_code=1 if number % 2 == 0 else 2)


def _opening(workload: Listed, site: Site) -> tuple[Step, ...]:
    """The set-up, then the directory and the environment of the first action, once and for all."""
    first = workload.make_steps(site)[0]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in first.env.items()]
    enter = [f"cd {shlex.quote(first.cwd)}"] if first.cwd else []
    opened = Step("set_up", "\n".join([*exports, *enter]) or "true", what="open-session")
    before = tuple(in_session(_at_home(step)) for step in workload.make_set_up(site))
    return (*before, in_session(opened))


def _at_home(step: Step) -> Step:
    """A set-up step in a subshell of its own, so that it leaves no trace in the session."""
    settings = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in step.env.items())
    enter = f"cd {shlex.quote(step.cwd)}\n" if step.cwd else ""
    return replace(step, script=f"(\n{settings}{enter}{step.script}\n)")


def _with_steps(workload: Listed, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Listed:
    return replace(workload, make_steps=partial(_changed, workload.make_steps, change))


def _changed(
    listed: Steps, change: Callable[[tuple[Step, ...]], tuple[Step, ...]], site: Site
) -> tuple[Step, ...]:
    return change(listed(site))


def _each_in_session(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(in_session(step) for step in steps)


def _arc(workload: Listed, _: Prepared | None, __: float | None) -> Listed:
    if not workload.name.startswith("K"):
        raise InputError(f"variant 'arc' reorders a trajectory, which {workload.name} is not")
    return _with_steps(workload, arc)


def _faulty(workload: Listed, _: Prepared | None, limit_s: float | None) -> Listed:
    return _with_steps(workload, partial(faulty, limit_s=limit_s or TIME_LIMIT_S))


def _chatty(workload: Listed, _: Prepared | None, __: float | None) -> Listed:
    return _with_steps(workload, chatty)


def _session(workload: Listed, _: Prepared | None, __: float | None) -> Listed:
    within = _with_steps(workload, _each_in_session)
    return replace(within, make_set_up=partial(_opening, workload), persistent_shell=True)


def _clone(workload: Listed, prepared: Prepared | None, _: float | None) -> Listed:
    if prepared is None or not workload.preloaded:
        raise InputError(f"variant 'clone': {workload.name} has no preloaded repository to clone")
    before = partial(_cloned, prepared, workload.make_set_up)
    return replace(workload, make_set_up=before, preloaded=False, egress=Egress.FULL)


def _cloned(prepared: Prepared, then: Steps, site: Site) -> tuple[Step, ...]:
    return (*tiers.clone(prepared.task, site), *then(site))


VARIANTS: dict[str, Variant] = {
    "clone": Variant(_clone),
    "arc": Variant(_arc),
    "faulty": Variant(_faulty, takes_number=True),
    "chatty": Variant(_chatty),
    "session": Variant(_session),
}
