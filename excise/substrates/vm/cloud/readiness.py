"""From a request to the first command: the steps of a machine in a cloud, whoever's cloud it is. Pure: it looks at nothing.

    created -> running -> address -> port open -> auth ok -> first command

At each step one thing is looked at, and what is seen either leads on, or is waited out, or ends it. Every step is stamped
when it is reached; what was waited out is counted, because a retry that nobody sees is a lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType


class Step(StrEnum):
    """How far a machine has come."""

    CREATED = "created"
    RUNNING = "running"
    ADDRESS = "address"
    PORT_OPEN = "port open"
    AUTH_OK = "auth ok"
    FIRST_COMMAND = "first command"


class Sign(StrEnum):
    """What was seen when one looked."""

    PENDING = "pending"
    RUNS = "runs"
    NO_ADDRESS = "no address"
    HAS_ADDRESS = "has an address"
    CLOSED = "port closed"
    OPEN = "port open"
    LET_IN = "let in"
    TURNED_AWAY = "turned away"
    CUT_OFF = "cut off"
    ANSWERED = "answered"
    THROTTLED = "throttled"
    GONE = "gone"


LEADS: Mapping[tuple[Step, Sign], Step] = MappingProxyType(
    {
        (Step.CREATED, Sign.RUNS): Step.RUNNING,
        (Step.RUNNING, Sign.HAS_ADDRESS): Step.ADDRESS,
        (Step.ADDRESS, Sign.OPEN): Step.PORT_OPEN,
        (Step.PORT_OPEN, Sign.LET_IN): Step.AUTH_OK,
        (Step.AUTH_OK, Sign.ANSWERED): Step.FIRST_COMMAND,
        (Step.PORT_OPEN, Sign.CUT_OFF): Step.ADDRESS,
        (Step.AUTH_OK, Sign.CUT_OFF): Step.ADDRESS,
    }
)
"""What leads to another step; a server that is started anew while a machine comes up leads back to its port."""

WAITED_OUT: Mapping[Step, frozenset[Sign]] = MappingProxyType(
    {
        Step.CREATED: frozenset({Sign.PENDING, Sign.THROTTLED}),
        Step.RUNNING: frozenset({Sign.NO_ADDRESS, Sign.THROTTLED}),
        Step.ADDRESS: frozenset({Sign.CLOSED}),
        Step.PORT_OPEN: frozenset({Sign.TURNED_AWAY}),
        Step.AUTH_OK: frozenset(),
        Step.FIRST_COMMAND: frozenset(),
    }
)
"""What passes by itself: keys are put in after the server has been started, answers are refused to who asks too much."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0


class Lost(Exception):
    """The machine will not become ready: the sign cannot follow, or says so."""


@dataclass(slots=True)
class Progress:
    """One machine's way. The clock is the caller's, in nanoseconds."""

    step: Step = Step.CREATED
    stamps: dict[Step, int] = field(default_factory=dict)
    waited: dict[Sign, int] = field(default_factory=dict)
    pause_s: float = FIRST_PAUSE_S
    """How long to wait before the next look: ever longer, until a step is reached for the first time."""

    def begin(self, now_ns: int) -> None:
        self.stamps[Step.CREATED] = now_ns

    @property
    def ready(self) -> bool:
        return self.step is Step.FIRST_COMMAND

    def see(self, sign: Sign, now_ns: int) -> bool:
        """Take what was seen; True if it led on, False if it is to be waited out. Lost if there is no way."""
        to = LEADS.get((self.step, sign))
        if to is None and sign not in WAITED_OUT[self.step]:
            raise Lost(f"{sign} at the step {self.step!s}")
        if to is not None and sign is not Sign.CUT_OFF:
            if to not in self.stamps:
                self.pause_s = FIRST_PAUSE_S
            self.step = to
            self.stamps[to] = now_ns
            return True
        self.step = to or self.step
        self.waited[sign] = self.waited.get(sign, 0) + 1
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        return False

    def spans_s(self) -> dict[str, float]:
        """How long each step took since the one before, in seconds, of those that were reached."""
        reached = pairwise(step for step in Step if step in self.stamps)
        return {str(b): (self.stamps[b] - self.stamps[a]) / 1e9 for a, b in reached}
