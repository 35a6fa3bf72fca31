"""Work and tax: what of a rollout a bare process would have needed too, and what is the substrate's.

    tax_i = D_i + (X_i - w_i)
    Tax   = Q + C + R + (S - w_S) + sum(tax_i) + F        Work = sum(w_i) + w_S
    Tax + Work = T - G                                    to the nanosecond

w_i is the duration of the same action as a bare process in the same block. A single `X_i - w_i` may
be negative, so only sums are given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from excise.errors import InputError
from excise.tax.breakdown import Breakdown, break_down
from excise.tax.marks import ActionMarks, Marks


@dataclass(frozen=True, slots=True)
class Work:
    """What the actions and the set-up of one workload cost as bare processes."""

    actions_ns: tuple[int, ...]
    set_up_ns: int
    same_block: bool
    """False where the block had no bare trial, so that all blocks had to stand in."""


class Baseline:
    """The bare trials of one workload, by block."""

    def __init__(self, bare_by_block: Mapping[Any, Sequence[Marks]]) -> None:
        self._by_block = {b: tuple(trials) for b, trials in bare_by_block.items() if trials}
        every = [m for trials in self._by_block.values() for m in trials]
        if not every:
            raise InputError("no bare trial to tell work from tax: add the bare cell to the study")
        lengths = {len(m.actions) for m in every}
        if len(lengths) > 1:
            raise InputError(f"bare trials of one workload differ in length: {sorted(lengths)}")
        self._overall = _work(every, same_block=False)

    def work(self, block: Hashable) -> Work:
        """The p50 of each action over the bare trials of this block, else over those of all blocks."""
        here = self._by_block.get(block)
        return _work(here, same_block=True) if here else self._overall


@dataclass(frozen=True, slots=True)
class WorkTax:
    """One trial, split. `dispatch` and `slowdown` are None without inside times; their sum is always known."""

    work_actions_ns: int
    work_set_up_ns: int
    queue_ns: int
    create_ns: int
    ready_ns: int
    set_up_tax_ns: int
    action_tax_ns: int
    dispatch_ns: int | None
    slowdown_ns: int | None
    cleanup_ns: int
    gap_ns: int
    total_ns: int
    actions: int
    same_block: bool

    @property
    def work_ns(self) -> int:
        return self.work_actions_ns + self.work_set_up_ns

    @property
    def tax_ns(self) -> int:
        before = self.queue_ns + self.create_ns + self.ready_ns + self.set_up_tax_ns
        return before + self.action_tax_ns + self.cleanup_ns

    @property
    def ratio(self) -> float:
        """Tax over work: 1 means that the infrastructure takes as long as the work itself."""
        return self.tax_ns / self.work_ns if self.work_ns else float("inf")

    @property
    def slowdown(self) -> float | None:
        """How many times longer the commands run inside than as bare processes."""
        if self.slowdown_ns is None or not self.work_actions_ns:
            return None
        return 1 + self.slowdown_ns / self.work_actions_ns


def split(trial: Marks, work: Work) -> WorkTax:
    """Split one trial into work and tax; ConservationError where its marks contradict each other."""
    if len(trial.actions) != len(work.actions_ns):
        raise InputError(
            f"a trial of {len(trial.actions)} actions has no baseline of {len(work.actions_ns)}"
        )
    parts = break_down(trial)
    bare = sum(work.actions_ns)
    return WorkTax(
        work_actions_ns=bare,
        work_set_up_ns=work.set_up_ns,
        queue_ns=parts.queue_ns,
        create_ns=parts.create_ns,
        ready_ns=parts.ready_ns,
        set_up_tax_ns=parts.set_up_ns - work.set_up_ns,
        action_tax_ns=parts.acting_ns - bare,
        dispatch_ns=parts.dispatch_ns,
        slowdown_ns=_slowdown(parts, bare),
        cleanup_ns=parts.cleanup_ns,
        gap_ns=parts.gap_ns,
        total_ns=parts.total_ns,
        actions=parts.actions,
        same_block=work.same_block,
    )


def _slowdown(parts: Breakdown, bare_ns: int) -> int | None:
    return None if parts.inside_ns is None else parts.inside_ns - bare_ns


def _work(trials: Iterable[Marks], *, same_block: bool) -> Work:
    every = list(trials)
    columns = zip(*([_duration(a) for a in m.actions] for m in every), strict=True)
    return Work(
        tuple(round(median(column)) for column in columns),
        round(median(_set_up(m) for m in every)),
        same_block,
    )


def _duration(action: ActionMarks) -> int:
    """A bare process's own duration, fork to reap; with its dispatch where nobody timed it."""
    elapsed = action.received_ns - action.sent_ns
    return elapsed if action.inside_ns is None else min(max(action.inside_ns, 0), elapsed)


def _set_up(marks: Marks) -> int:
    """The set-up's commands, or the whole span where it consists of something else."""
    if marks.set_up_actions:
        return sum(_duration(a) for a in marks.set_up_actions)
    return marks.set_up_ns - marks.ready_ns
