"""The marks of one rollout through the service, in 32 bytes an action, and the trial they make at its end. Pure.

A live rollout may act several times at once, and a trial acts once at a time: what overlaps is laid end to end, so
that no moment counts twice, and the components still add up to the total, to the nanosecond.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from excise.tax.marks import ActionMarks

UNKNOWN = -1
MOST_ACTIONS = 5000
"""Kept of one rollout; further ones are counted, and their time is the gap's."""

_FIELDS = 4


class ActionTimes:
    """When each action was sent and answered, how long it took inside, and how it ended."""

    __slots__ = ("_values", "dropped")

    def __init__(self) -> None:
        self._values = array("q")
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._values) // _FIELDS

    def add(self, sent_ns: int, received_ns: int, inside_ns: int | None, code: int) -> None:
        if len(self._values) >= MOST_ACTIONS * _FIELDS:
            self.dropped += 1
            return
        inside = UNKNOWN if inside_ns is None else inside_ns
        self._values.extend((sent_ns, received_ns, inside, code))

    def __iter__(self) -> Iterator[tuple[int, int, int | None, int]]:
        values = self._values
        for at in range(0, len(values), _FIELDS):
            sent, received, inside, code = values[at : at + _FIELDS]
            yield sent, received, None if inside == UNKNOWN else inside, code


def end_to_end(times: ActionTimes, from_ns: int, to_ns: int) -> list[tuple[ActionMarks, int]]:
    """The actions in order within these bounds, none overlapping the one before it; with their exit codes."""
    found: list[tuple[ActionMarks, int]] = []
    at = from_ns
    for sent, received, inside, code in sorted(times, key=lambda each: (each[1], each[0])):
        begun = min(max(sent, at), to_ns)
        ended = min(max(received, begun), to_ns)
        at = ended
        held = None if inside is None else max(0, min(inside, ended - begun))
        found.append((ActionMarks(begun, ended, held), code))
    return found
