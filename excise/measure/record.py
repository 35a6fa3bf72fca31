"""What is written of every trial: one JSON line, as soon as it has ended.

Format history
1  2026-11  first
"""

from __future__ import annotations

from typing import Literal

import msgspec

from excise.tax.marks import ActionMarks, Marks

FORMAT = 1
OWN_PROGRAMS = "its own"
"""What a substrate is said to run where that is not what the bare process runs."""

Outcome = Literal["ok", "mismatch", "substrate_error", "conservation", "timeout", "harness_error"]
"""ok: all golden. mismatch: another exit code or output than golden. Others: what broke, see `error`."""


Cache = Literal["warm", "cold-page"]
"""warm: image unpacked, page cache hot. cold-page: the host's page cache was dropped before the trial."""


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action as sent and as observed."""

    kind: str
    sent_ns: int
    received_ns: int
    inside_ns: int | None = None
    cpu_ns: int | None = None
    exit_code: int
    size_bytes: int = 0
    sha256: str = ""
    golden: bool | None = None
    """Whether exit code and normalised digest are the golden ones; None where nothing is known."""
    timed_out: bool = False


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a trial is not ok: the type, its phase where it is the substrate's, and what it said."""

    type: str
    message: str
    phase: str | None = None
    retryable: bool = False
    action: int | None = None


class Noise(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else the machine was doing during the trial. None: this host cannot tell."""

    steal_share: float | None = None
    busy_share: float | None = None
    load1: float | None = None
    runnable: int | None = None
    """Run-queue length when the trial had ended: processes that ran or waited for a CPU, this one left out."""
    psi_cpu_us: int | None = None
    psi_io_us: int | None = None
    psi_memory_us: int | None = None
    cpu_s: float | None = None
    """CPU seconds of the harness and of everything it started and reaped."""
    host_cpu_s: float | None = None
    """CPU seconds of the whole machine: includes daemons, sandboxes and neighbours."""
    other_share: float | None = None
    """Share of the machine's core time that neither harness nor sandbox used; None too where daemons work for the
    sandbox, and where the trial was too short to tell."""
    span_s: float | None = None
    """What all of this is counted over: a little more than the trial."""
    context_switches: int | None = None
    major_faults: int | None = None
    available_before_bytes: int | None = None
    available_bytes: int | None = None
    """Memory that new work could have had, before the trial and after it."""
    lowest_bytes: int | None = None
    """The least of it while a load ran; None for a trial by itself."""
    waited_s: float = 0.0


class Readied(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done for a trial off its clock, and what it found done. Of a load: its share of what all took."""

    spent_s: float
    saved_s: float
    idle_s: float = 0.0


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One trial. `marks` hold what was taken; a trial that is ok has all of them."""

    format: int = FORMAT
    study: str
    session: int = 1
    block: int
    position: int
    cell: str
    """substrate label / workload: the unit of the design, e.g. `docker/T2:attrs-1417`."""
    substrate: str
    workload: str
    task: str | None = None
    tree: str | None = None
    actions_planned: int
    seed: int
    warm_up: bool = False
    cache: Cache = "warm"
    load: str | None = None
    """The load shape of an open-loop trial, such as `burst:32`; None: one at a time."""
    intended_ns: int | None = None
    marks: dict[str, int] = {}
    set_up: tuple[ActionRecord, ...] = ()
    actions: tuple[ActionRecord, ...] = ()
    clipped: int = 0
    outcome: Outcome
    error: Failure | None = None
    noise: Noise = Noise()
    readied: Readied | None = None
    """None: its substrate makes nothing ready."""

    @property
    def key(self) -> tuple[int, int, str]:
        """What makes a trial this one and no other, for a study that resumes."""
        return (self.session, self.block, self.cell)

    @property
    def complete(self) -> Marks:
        """The marks of a trial that went through to its end."""
        return Marks.of(self.marks, map(_marks, self.actions), map(_marks, self.set_up))


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cell of the design: a substrate under a label, with its options, on one workload."""

    label: str
    substrate: str
    options: dict[str, str] = {}
    workload: str
    blocks: int | None = None
    """In how many blocks the cell appears; None: in all of them. Long cells may appear in fewer."""
    warm_ups: int | None = None
    load: str | None = None
    """A load shape such as `burst:32` instead of one trial at a time."""
    cache: Cache = "warm"
    """What is warm when a trial begins: a factor of the design like any other."""

    @property
    def name(self) -> str:
        shape = f"@{self.load}" if self.load else ""
        cold = "" if self.cache == "warm" else f"~{self.cache}"
        return f"{self.label}/{self.workload}{shape}{cold}"


class Overhead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The harness's own cost, measured before anything else on the null substrate."""

    trial_us: tuple[float, float]
    """p50 and p95 of a whole trial that does nothing."""
    action_us: tuple[float, float]
    clock_ns: float
    trials: int


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """A doubt that was already known when the study began."""

    kind: str
    text: str
    advice: str


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a study (`study.json`): what was planned, on which host, with what."""

    format: int = FORMAT
    id: str
    started: str
    preset: str
    seed: int
    blocks: int
    warm_ups: int
    session: int = 1
    version: str
    cells: tuple[Cell, ...]
    host: dict[str, str | int | float | None]
    substrates: dict[str, dict[str, str]] = {}
    """By label: isolation, versions, settings; what a figure's caption must say."""
    overhead: Overhead | None = None
    placement: str = ""
    """Which cores the harness and the sandboxes were bound to, in words."""
    limits: dict[str, str | int | float | None] = {}
    tasks: dict[str, str] = {}
    """By task id: the name or the path of the descriptor it was prepared from."""
    skipped: dict[str, str] = {}
    """Substrates that were meant to take part and could not, with the reason."""
    minutes: float | None = None
    """Set where `blocks` is what fitted into a time; None: it was fixed before."""
    merged: bool = False
    """Whether cells count the blocks of several studies together."""
    references: dict[str, str] = {}
    """By workload: the digest over all its golden observations."""
    doubts: tuple[Noted, ...] = ()


def _marks(a: ActionRecord) -> ActionMarks:
    return ActionMarks(a.sent_ns, a.received_ns, a.inside_ns)
