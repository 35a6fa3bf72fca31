"""The life of one sandbox as one table.

Two rules: a verb is allowed only where the table has a row for it, and whatever fails
leads to BROKEN, from where the only way is `destroy`.
"""

from __future__ import annotations

from enum import StrEnum

from excise.errors import LifecycleError


class State(StrEnum):
    NEW = "new"
    CREATED = "created"
    READY = "ready"
    ACTING = "acting"
    BROKEN = "broken"
    GONE = "gone"


class Event(StrEnum):
    CREATE = "create"
    READY = "ready"
    ACT = "act"
    OBSERVE = "observe"
    RESET = "reset"
    FAIL = "fail"
    DESTROY = "destroy"


TABLE: dict[tuple[State, Event], State] = {
    (State.NEW, Event.CREATE): State.CREATED,
    (State.NEW, Event.FAIL): State.BROKEN,
    (State.CREATED, Event.READY): State.READY,
    (State.CREATED, Event.FAIL): State.BROKEN,
    (State.CREATED, Event.DESTROY): State.GONE,
    (State.READY, Event.ACT): State.ACTING,
    (State.READY, Event.RESET): State.READY,
    (State.READY, Event.FAIL): State.BROKEN,
    (State.READY, Event.DESTROY): State.GONE,
    (State.ACTING, Event.OBSERVE): State.READY,
    (State.ACTING, Event.FAIL): State.BROKEN,
    (State.BROKEN, Event.FAIL): State.BROKEN,
    (State.BROKEN, Event.DESTROY): State.GONE,
    (State.GONE, Event.DESTROY): State.GONE,
}


def step(state: State, event: Event) -> State:
    """The state after `event`, or a LifecycleError that says what was allowed instead."""
    try:
        return TABLE[state, event]
    except KeyError:
        allowed = ", ".join(e for (s, e) in TABLE if s is state)
        raise LifecycleError(
            f"cannot {event} a sandbox that is {state}; allowed: {allowed}"
        ) from None
