"""From what was seen of a trial to its record: golden or not, conserved or not, and if it failed, whose fault.

Pure: hashing and comparing happen here, after the last mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from excise.errors import DeadlineExceeded, SubstrateError
from excise.measure.plan import Slot
from excise.measure.record import ActionRecord, Failure, Outcome, TrialRecord
from excise.measure.trial import Act, Performance, Setting
from excise.tax.breakdown import ConservationError, break_down
from excise.tax.marks import Marks
from excise.workloads import goldens
from excise.workloads.base import Golden

MESSAGE_CHARS = 500


def judge(
    seen: Performance,
    setting: Setting,
    slot: Slot,
    *,
    study: str,
    load: str | None = None,
    intended_ns: int | None = None,
) -> TrialRecord:
    """The record of one trial: every trial gets one."""
    known = setting.goldens or ()
    boundary = len(seen.set_up)
    set_up = _records(seen.set_up, known[:boundary])
    actions = _records(seen.actions, known[boundary:])
    outcome, failure, clipped = _verdict(seen, setting, (*set_up, *actions))
    return TrialRecord(
        study=study,
        session=slot.session,
        block=slot.block,
        position=slot.position,
        cell=slot.cell.name,
        substrate=setting.substrate.name,
        workload=setting.workload.name,
        task=setting.workload.task,
        tree=setting.tree,
        actions_planned=seen.planned,
        seed=slot.seed,
        warm_up=slot.warm_up,
        cache=slot.cell.cache,
        load=load,
        intended_ns=intended_ns,
        marks=seen.marks,
        set_up=set_up,
        actions=actions,
        clipped=clipped,
        outcome=outcome,
        error=failure,
    )


def _records(acts: Sequence[Act], known: Sequence[Golden]) -> tuple[ActionRecord, ...]:
    return tuple(
        _record(act, golden)
        for act, golden in zip_longest(acts, known[: len(acts)])
        if act is not None
    )


def _record(act: Act, golden: Golden | None) -> ActionRecord:
    step, marks, seen = act
    is_now = goldens.golden_of(seen.exit_code, seen.stdout)
    if golden is not None:
        right = not seen.truncated and goldens.matches(golden, seen.exit_code, seen.stdout)
    elif step.exit_code is not None:
        right = seen.exit_code == step.exit_code
    else:
        right = None
    return ActionRecord(
        kind=step.kind,
        sent_ns=marks.sent_ns,
        received_ns=marks.received_ns,
        inside_ns=marks.inside_ns,
        cpu_ns=seen.cpu_ns,
        exit_code=seen.exit_code,
        size_bytes=is_now.size_bytes,
        sha256=is_now.sha256,
        golden=right,
        timed_out=seen.timed_out,
    )


def _verdict(
    seen: Performance, setting: Setting, acted: Sequence[ActionRecord]
) -> tuple[Outcome, Failure | None, int]:
    if seen.error is not None:
        return *_broken(seen), 0
    wrong = next((i for i, a in enumerate(acted) if a.golden is False), None)
    if wrong is not None:
        return *_mismatch(seen, setting, wrong), 0
    try:
        parts = break_down(_marks(seen))
    except ConservationError as error:
        return "conservation", Failure(type="ConservationError", message=str(error)), 0
    if parts.actions != seen.planned:
        message = f"{parts.actions} of {seen.planned} actions were run"
        return "conservation", Failure(type="ConservationError", message=message), 0
    return "ok", None, parts.clipped


def _broken(seen: Performance) -> tuple[Outcome, Failure]:
    error = seen.error
    action = len(seen.acted)
    if isinstance(error, SubstrateError):
        outcome: Outcome = (
            "timeout" if seen.hung or isinstance(error, DeadlineExceeded) else "substrate_error"
        )
        return outcome, Failure(
            type=type(error).__name__,
            message=error.message[:MESSAGE_CHARS],
            phase=str(error.phase),
            retryable=error.retryable,
            action=action,
        )
    if seen.hung:
        message = f"the trial did not end in time; {action} actions were answered"
        return "timeout", Failure(
            type="TimeoutError", message=message, phase=_phase(seen), action=action
        )
    return "harness_error", Failure(
        type=type(error).__name__, message=str(error)[:MESSAGE_CHARS], action=action
    )


def _phase(seen: Performance) -> str:
    """Where a trial was that hung, from the marks it took."""
    for mark, phase in (("created", "create"), ("ready", "ready")):
        if mark not in seen.marks:
            return phase
    return "run"


def _mismatch(seen: Performance, setting: Setting, wrong: int) -> tuple[Outcome, Failure]:
    step, _, got = seen.acted[wrong]
    known = setting.goldens[wrong] if setting.goldens and wrong < len(setting.goldens) else None
    meant = step.exit_code if known is None else known.exit_code
    said = got.stdout[-200:].decode("utf-8", "replace").strip()
    if got.exit_code != meant:
        what = f"exit code {got.exit_code} instead of {meant}"
    elif got.truncated:
        what = "the substrate cut the output off"
    else:
        what = "another output than golden"
    title = step.what or step.kind
    return "timeout" if got.timed_out and meant != got.exit_code else "mismatch", Failure(
        type="Mismatch",
        message=f"action {wrong} ({title}): {what}; it ended with: {said}"[:MESSAGE_CHARS],
        action=wrong,
    )


def _marks(seen: Performance) -> Marks:
    return Marks.of(seen.marks, (m for _, m, _ in seen.actions), (m for _, m, _ in seen.set_up))
