"""Equation (1'): the components of one trial, which add up to its total to the nanosecond.

    T = Q + C + R + S + sum(D_i + X_i) + G + F

`inside` (X) is timed in the sandbox, `dispatch` (D) is what is left of the action; both are None
where any action of the trial lacks its inside time, and `acting` is their sum, always known.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from excise.tax.marks import ActionMarks, Marks

CLIP_NS = 50_000
"""An inside time may exceed its action's bounds by this much (two clocks' rounding): clipped, counted."""


class ConservationError(ValueError):
    """The marks of a trial contradict each other: a bug in the clock or the trailer, so the trial fails."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    queue_ns: int
    create_ns: int
    ready_ns: int
    set_up_ns: int
    acting_ns: int
    dispatch_ns: int | None
    inside_ns: int | None
    gap_ns: int
    cleanup_ns: int
    total_ns: int
    actions: int
    clipped: int

    @property
    def tti_ns(self) -> int:
        """Request to the first trivial command's result."""
        return self.create_ns + self.ready_ns

    @property
    def episode_ns(self) -> int:
        """Request to the last observation: without the queue before and the cleanup after."""
        return self.total_ns - self.queue_ns - self.cleanup_ns

    @property
    def fixed_share(self) -> float:
        """The part of the total that does not grow with the number of actions."""
        varying = self.acting_ns + self.gap_ns
        return (self.total_ns - varying) / self.total_ns if self.total_ns else 0.0

    @property
    def amortised_ns(self) -> float:
        """Episode per action: an average with start-up in it, not a command's latency."""
        return self.episode_ns / self.actions if self.actions else float("nan")


def break_down(marks: Marks) -> Breakdown:
    """Split a trial into its components, or raise ConservationError."""
    order = marks.in_order()
    for earlier, later in pairwise(order):
        if later < earlier:
            raise ConservationError(f"marks run backwards: {later} after {earlier}")
    insides = [_inside(a) for a in marks.actions]
    acting = sum(a.received_ns - a.sent_ns for a in marks.actions)
    known = all(x is not None for x, _ in insides)
    inside = sum(x for x, _ in insides if x is not None) if known else None
    parts = Breakdown(
        queue_ns=marks.requested_ns - marks.due_ns,
        create_ns=marks.created_ns - marks.requested_ns,
        ready_ns=marks.ready_ns - marks.created_ns,
        set_up_ns=marks.set_up_ns - marks.ready_ns,
        acting_ns=acting,
        dispatch_ns=None if inside is None else acting - inside,
        inside_ns=inside,
        gap_ns=_gap(marks),
        cleanup_ns=marks.gone_ns - marks.teardown_ns,
        total_ns=marks.gone_ns - marks.due_ns,
        actions=len(marks.actions),
        clipped=sum(c for _, c in insides),
    )
    if _sum(parts) != parts.total_ns:
        raise ConservationError(
            f"components add up to {_sum(parts)} ns, not to {parts.total_ns} ns"
        )
    return parts


def _sum(b: Breakdown) -> int:
    split = (
        b.acting_ns if b.dispatch_ns is None or b.inside_ns is None else b.dispatch_ns + b.inside_ns
    )
    return b.queue_ns + b.create_ns + b.ready_ns + b.set_up_ns + split + b.gap_ns + b.cleanup_ns


def _gap(marks: Marks) -> int:
    """Harness time (or think time) between set-up, actions and teardown."""
    edges = [
        marks.set_up_ns,
        *(t for a in marks.actions for t in (a.sent_ns, a.received_ns)),
        marks.teardown_ns,
    ]
    return sum(edges[i + 1] - edges[i] for i in range(0, len(edges), 2))


def _inside(action: ActionMarks) -> tuple[int | None, int]:
    """The inside time held within the action's bounds, and 1 if it had to be clipped."""
    x, bound = action.inside_ns, action.received_ns - action.sent_ns
    if x is None or 0 <= x <= bound:
        return x, 0
    excess = -x if x < 0 else x - bound
    if excess > CLIP_NS:
        raise ConservationError(f"inside time {x} ns does not fit into an action of {bound} ns")
    return min(max(x, 0), bound), 1
