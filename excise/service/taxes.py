"""The tax of every rollout through the service: marked as it happens, broken down at its end, kept within bounds.

The same marks and the same arithmetic as in a study. Marking an action costs about a microsecond; `on` False costs
one test.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from excise.errors import Phase, SubstrateError
from excise.measure.record import ActionRecord, Failure, Outcome, TrialRecord
from excise.service.groups import LABEL, Groups
from excise.service.marks import end_to_end
from excise.service.metrics import Metrics, Windows
from excise.service.sandbox import Ended
from excise.tax.breakdown import Breakdown, ConservationError, break_down

if TYPE_CHECKING:
    from excise.service.sandbox import Sandbox, Wanted
    from excise.types import Observation

RECENT = 500
"""Rollouts whose breakdown is at hand; all others are in the file."""

PARTS = ("create", "ready", "dispatch", "work", "gap", "cleanup")
FAILED = "failed"
STRAGGLER = "straggler"
LOST = "lost_groups"


OUTCOMES: Mapping[Ended, Outcome] = {
    Ended.FAILED: "substrate_error",
    Ended.IDLE: "timeout",
    Ended.DRAINED: "harness_error",
}
"""What the end of a sandbox makes of its rollout; else it went well, whatever its commands did."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One that has ended, as the page shows it. Nanoseconds by part."""

    id: str
    owner: str
    door: str
    workload: str
    ended_s: float
    outcome: Outcome
    actions: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Coming:
    """A sandbox that was asked for, and is not there yet."""

    owner: str
    wanted: Wanted
    image: str
    asked_ns: int

    @property
    def group(self) -> str | None:
        return self.wanted.labels.get(LABEL)


class Taxes:
    """Keeps the books. `keep` takes each rollout's record as one line of JSON."""

    def __init__(
        self, metrics: Metrics, *, on: bool = True, keep: Callable[[bytes], None] | None = None
    ) -> None:
        self.on = on
        self.metrics = metrics
        self.keep = keep
        self.recent: deque[Rollout] = deque(maxlen=RECENT)
        self.windows = Windows()
        self.spent_ns: Counter[str] = Counter()
        """Worker time so far, by part and by cause; causes overlap the parts."""
        self.rollouts: Counter[str] = Counter()
        self.actions = 0
        self._groups = Groups()
        self._numbers = 0

    def began(self, sandbox: Sandbox) -> None:
        """It is ready for its first action."""
        if not self.on:
            return
        self.metrics.took("create", sandbox.created_ns - sandbox.asked_ns)
        self.metrics.took("ready", sandbox.ready_ns - sandbox.created_ns)
        if (group := sandbox.labels.get(LABEL)) is not None:
            self._groups.begin(sandbox.owner, group)

    def acted(self, sandbox: Sandbox, sent_ns: int, received_ns: int, found: Observation) -> None:
        """An action was answered, however it ended."""
        if not self.on:
            return
        inside_ns = found.inside_ns
        sandbox.times.add(sent_ns, received_ns, inside_ns, found.exit_code)
        self.actions += 1
        took_ns = received_ns - sent_ns
        self.windows.add(received_ns, took_ns)
        if inside_ns is not None:
            self.metrics.took("dispatch", max(0, took_ns - inside_ns))
            self.metrics.took("work", inside_ns)

    def never_came(self, coming: Coming, failed_ns: int, wall_s: float, error: Exception) -> None:
        """The infrastructure failed to make it: a rollout that ended before it began, and its group's loss."""
        if not self.on:
            return
        self._numbers += 1
        spent_ns = failed_ns - coming.asked_ns
        phase = error.phase if isinstance(error, SubstrateError) else Phase.CREATE
        part = "create" if phase is Phase.CREATE else "ready"
        for name in (part, FAILED):
            self.spent_ns[name] += spent_ns
        if coming.group is not None:
            self._groups.lose(coming.owner, coming.group)
            self.spent_ns[LOST] += spent_ns
        record = _record(
            self._numbers,
            coming.wanted,
            coming.image,
            {"due": coming.asked_ns, "requested": coming.asked_ns, "gone": failed_ns},
            outcome="substrate_error",
            error=Failure(
                type=type(error).__name__,
                message=str(error),
                phase=str(phase),
                retryable=isinstance(error, SubstrateError) and error.retryable,
            ),
        )
        parts = tuple(spent_ns if name == part else 0 for name in PARTS)
        self._close("", coming.owner, record, wall_s, parts)

    def ended(
        self, sandbox: Sandbox, teardown_ns: int, gone_ns: int, wall_s: float, outcome: Outcome
    ) -> None:
        """It is no more: its books are closed."""
        if not self.on:
            return
        self._numbers += 1
        self.metrics.took("cleanup", gone_ns - teardown_ns)
        record = self._told(sandbox, teardown_ns, gone_ns, outcome)
        parts = self._parts(record)
        for name, ns in zip(PARTS, parts, strict=True):
            self.spent_ns[name] += ns
        spent_ns, failed = sum(parts), outcome == "substrate_error"
        if failed:
            self.spent_ns[FAILED] += spent_ns
        if (group := sandbox.labels.get(LABEL)) is not None:
            settled = self._groups.end(sandbox.owner, group, gone_ns, spent_ns, failed=failed)
            if settled is not None:
                self.spent_ns[STRAGGLER] += settled.straggler_ns
                self.spent_ns[LOST] += settled.lost_ns
        self._close(sandbox.id, sandbox.owner, record, wall_s, parts)

    def _close(
        self, id_: str, owner: str, record: TrialRecord, wall_s: float, parts: tuple[int, ...]
    ) -> None:
        """One rollout's books are closed."""
        self.rollouts[record.outcome] += 1
        self.recent.append(
            Rollout(
                id_,
                owner,
                record.substrate,
                record.workload,
                wall_s,
                record.outcome,
                len(record.actions),
                parts,
            )
        )
        if self.keep is not None:
            self.keep(msgspec.json.encode(record) + b"\n")

    def _told(
        self, sandbox: Sandbox, teardown_ns: int, gone_ns: int, outcome: Outcome
    ) -> TrialRecord:
        laid = end_to_end(sandbox.times, sandbox.ready_ns, teardown_ns)
        failure = None
        if outcome != "ok":
            failure = Failure(type="Ended", message=sandbox.ended or "", phase="run")
        return _record(
            self._numbers,
            sandbox.wanted,
            sandbox.spec.image,
            {
                "due": sandbox.asked_ns,
                "requested": sandbox.asked_ns,
                "created": sandbox.created_ns,
                "ready": sandbox.ready_ns,
                "set_up": sandbox.ready_ns,
                "teardown": teardown_ns,
                "gone": gone_ns,
            },
            tuple(
                ActionRecord(
                    kind="live",
                    sent_ns=marks.sent_ns,
                    received_ns=marks.received_ns,
                    inside_ns=marks.inside_ns,
                    exit_code=code,
                )
                for marks, code in laid
            ),
            outcome=outcome,
            error=failure,
        )

    def _parts(self, record: TrialRecord) -> tuple[int, ...]:
        try:
            found: Breakdown = break_down(record.complete)
        except ConservationError:
            self.metrics.failed("conservation", None)
            return (0,) * len(PARTS)
        inside = found.inside_ns if found.inside_ns is not None else found.acting_ns
        dispatch = found.acting_ns - inside
        gap = found.gap_ns
        return (found.create_ns, found.ready_ns, dispatch, inside, gap, found.cleanup_ns)


def _record(
    number: int,
    wanted: Wanted,
    image: str,
    marks: dict[str, int],
    actions: tuple[ActionRecord, ...] = (),
    *,
    outcome: Outcome,
    error: Failure | None,
) -> TrialRecord:
    workload, label = f"live:{wanted.template or image}", wanted.door
    return TrialRecord(
        study="live",
        block=number,
        position=0,
        cell=f"{label}/{workload}",
        substrate=label,
        workload=workload,
        actions_planned=len(actions),
        seed=0,
        marks=marks,
        actions=actions,
        outcome=outcome,
        error=error,
    )
