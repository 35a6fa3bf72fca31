"""The marks of one trial: integer nanoseconds of one monotonic clock, in the order they were taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionMarks:
    """`sent` and `received` bound one action; `inside_ns` is its duration as timed in the sandbox."""

    sent_ns: int
    received_ns: int
    inside_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """m0..m6 of the method: due, requested, created, ready, set up, actions, teardown, gone."""

    due_ns: int
    requested_ns: int
    created_ns: int
    ready_ns: int
    set_up_ns: int
    actions: tuple[ActionMarks, ...]
    teardown_ns: int
    gone_ns: int
    set_up_actions: tuple[ActionMarks, ...] = ()

    @classmethod
    def of(
        cls,
        taken: Mapping[str, int],
        actions: Iterable[ActionMarks],
        set_up_actions: Iterable[ActionMarks] = (),
    ) -> Marks:
        """From marks by name, as sessions take them; `KeyError` where one was never taken."""
        return cls(
            due_ns=taken["due"],
            requested_ns=taken["requested"],
            created_ns=taken["created"],
            ready_ns=taken["ready"],
            set_up_ns=taken["set_up"],
            actions=tuple(actions),
            teardown_ns=taken["teardown"],
            gone_ns=taken["gone"],
            set_up_actions=tuple(set_up_actions),
        )

    def in_order(self) -> tuple[int, ...]:
        """All marks in the order they must have been taken."""
        acts = [t for a in self.actions for t in (a.sent_ns, a.received_ns)]
        setup = [t for a in self.set_up_actions for t in (a.sent_ns, a.received_ns)]
        head = (self.due_ns, self.requested_ns, self.created_ns, self.ready_ns, *setup)
        return (*head, self.set_up_ns, *acts, self.teardown_ns, self.gone_ns)
