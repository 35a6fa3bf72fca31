"""The table of what came of load shapes."""

from __future__ import annotations

from excise.report import units
from excise.report.table import Said, Table, said
from excise.report.units import NONE
from excise.report.values import Load, Summary
from excise.types import MIB


def loads(summary: Summary) -> Table:
    """Provisioning under load, one row per run; a run whose generator was late has no times."""
    return Table(
        "loads",
        "Under load",
        "Open loop: tti counts from the time each trial was due, waiting included; service from when it was asked "
        "for. First and all ready count from the first one that was due. Failed trials never end. Per second: trials "
        "that came through, over the time until the last had ended. Memory each: what was less available on the host at the "
        "worst moment, neighbours included, over the most sandboxes at once. Void: the generator asked 5 ms too late at least "
        "once, so that the run says nothing. closed:W:N is no open loop but W workers always busy: its times leave out "
        "what a trial waited for a worker.",
        (
            "substrate",
            "workload",
            "load",
            "ok / n",
            "tti p50",
            "tti p95",
            "tti p99",
            "service p50",
            "first ready",
            "all ready",
            "per second",
            "memory each",
            "asked late by",
        ),
        tuple(_row(x) for x in summary.loads),
    )


def _row(x: Load) -> tuple[Said, ...]:
    kinds = units.failures(x.failures)
    who = (Said(x.label), Said(x.workload), Said(x.load), Said(f"{x.n - x.failed} / {x.n}", kinds))
    late = Said(units.seconds(x.latest_s), "void" if x.void else "")
    if x.void:
        return (*who, *[Said("void")] * 8, late)
    return (
        *who,
        *(
            said(i, units.seconds_interval)
            for i in (x.tti_p50, x.tti_p95, x.tti_p99, x.service_p50)
        ),
        Said(NONE if x.first_s is None else units.seconds(x.first_s)),
        Said("never" if x.last_s is None else units.seconds(x.last_s)),
        Said(units.plain(x.per_second)),
        Said(NONE if x.memory_each_bytes is None else f"{x.memory_each_bytes / MIB:.1f} MiB"),
        late,
    )
