"""What a pool did, in numbers: every acquire with what it got, and what warmth cost beside what it saved."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Got(StrEnum):
    """How warm the sandbox was that a rollout got."""

    EXACT = "exact"
    PARTIAL = "partial"
    MISS = "miss"


@dataclass(frozen=True, slots=True)
class Acquired:
    """What one rollout got, and why: there are no silent misses."""

    got: Got
    why: str
    waited_s: float
    saved_s: float
    shared: int
    stages: int
    attempts: int = 1

    def __str__(self) -> str:
        return (
            f"{self.got} ({self.shared} of {self.stages} stages) after {self.waited_s:.3g} s: "
            f"{self.why}; saved {self.saved_s:.3g} s"
        )


@dataclass(slots=True)
class Counts:
    """Totals since the pool began. Seconds are sums; `kept_s` is idle sandboxes times how long they idled."""

    acquired: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    laid: int = 0
    made: int = 0
    forked: int = 0
    reset: int = 0
    destroyed: int = 0
    retried: int = 0
    doubted: int = 0
    withdrawn: int = 0
    refused: int = 0
    waited_s: float = 0.0
    waited_most_s: float = 0.0
    saved_s: float = 0.0
    fill_s: float = 0.0
    reset_s: float = 0.0
    kept_s: float = 0.0

    def add(self, one: Acquired) -> None:
        """One rollout got its sandbox."""
        self.acquired[one.got] += 1
        self.waited_s += one.waited_s
        self.waited_most_s = max(self.waited_most_s, one.waited_s)
        self.saved_s += one.saved_s


HELP = {
    "laid": "Environments of which something had to be built.",
    "made": "Sandboxes made, from nothing or by a fork.",
    "forked": "Those of them that were forked from a prepared one.",
    "reset": "Sandboxes brought back to pristine and proved so.",
    "destroyed": "Sandboxes destroyed.",
    "retried": "Creations that were tried again.",
    "doubted": "Sandboxes that could not be proved fit, and were destroyed instead of handed out.",
    "withdrawn": "Rollouts that stopped waiting.",
    "refused": "Rollouts that were turned away: queue full, deadline over, or a stage that fails.",
    "waited_s": "Seconds that rollouts waited for their sandbox, summed.",
    "saved_s": "Seconds of preparation that rollouts found done, summed.",
    "fill_s": "Seconds spent on building layers and making sandboxes, on or off the critical path.",
    "reset_s": "Seconds spent on resetting and proving.",
    "kept_s": "Sandbox-seconds of idling: the price of being ready.",
}


def exposition(counts: Counts, gauges: dict[str, float], *, pool: str) -> str:
    """The numbers in the text format that Prometheus reads."""
    label = f'pool="{_escaped(pool)}"'
    lines = []
    for name, text in HELP.items():
        metric = f"excise_pool_{name.removesuffix('_s')}{'_seconds' if name.endswith('_s') else ''}"
        lines += [f"# HELP {metric}_total {text}", f"# TYPE {metric}_total counter"]
        lines.append(f"{metric}_total{{{label}}} {getattr(counts, name):g}")
    lines += ["# HELP excise_pool_acquired_total Sandboxes handed out, by how warm they were."]
    lines += ["# TYPE excise_pool_acquired_total counter"]
    lines += [
        f'excise_pool_acquired_total{{{label},got="{got}"}} {counts.acquired[got]}' for got in Got
    ]
    lines += ["# HELP excise_pool_failures_total Failures of the substrate, by phase."]
    lines += ["# TYPE excise_pool_failures_total counter"]
    lines += [
        f'excise_pool_failures_total{{{label},phase="{phase}"}} {count}'
        for phase, count in sorted(counts.failures.items())
    ]
    for name, value in gauges.items():
        lines += [f"# TYPE excise_pool_{name} gauge", f"excise_pool_{name}{{{label}}} {value:g}"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
