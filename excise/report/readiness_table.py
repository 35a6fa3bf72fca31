"""The table of what warm pools took and saved."""

from __future__ import annotations

from excise.report import units
from excise.report.table import Said, Table
from excise.report.units import NONE
from excise.report.values import Summary


def readiness(summary: Summary) -> Table:
    """One row per cell of a substrate that makes things ready."""
    return Table(
        "readiness",
        "What being ready took",
        "Means per trial. Made ready: seconds of making, resetting and proving sandboxes, most of them before the "
        "trial and on no component of its time. Idle: sandboxes times how long they waited. Found done: preparation "
        "that the trial did not have to wait for, at its measured price. Layers that are built once are not in it again.",
        ("workload", "substrate", "load", "n", "made ready", "idle", "found done"),
        tuple(
            (
                Said(r.workload),
                Said(r.label),
                Said(r.load or NONE),
                Said(str(r.n)),
                *(Said(units.seconds(s)) for s in (r.spent_s, r.idle_s, r.saved_s)),
            )
            for r in summary.readiness
        ),
    )
