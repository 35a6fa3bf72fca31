"""What whoever watches a service sees of it: numbers of this moment, for Prometheus, the page and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import excise
from excise.pools.pool import Pool
from excise.service.cloud import Cloud
from excise.service.sandbox import NS, Sandbox, State
from excise.service.taxes import FAILED, LOST, PARTS, STRAGGLER, Rollout
from excise.substrates.base import Warms
from excise.warm import counts

SHOWN_SANDBOXES = 500
SHOWN_ROLLOUTS = 60
SHOWN_ACTIONS = 400
QUANTILES = (0.5, 0.9, 0.99)


def exposition(cloud: Cloud) -> str:
    """Everything in the text format of Prometheus."""
    text = cloud.metrics.exposition(_gauges(cloud))
    if isinstance(cloud.substrate, Warms):
        text += "\n".join(counts.metrics(cloud.substrate.warmed)) + "\n"
    if isinstance(cloud.substrate, Pool):
        text += cloud.substrate.metrics()
    return text


def live(cloud: Cloud, owner: str | None) -> dict[str, Any]:
    """What the page shows; of one owner's sandboxes, or of everybody's for whoever watches all."""
    living = [s for s in cloud.census.living() if owner is None or s.owner == owner]
    recent = [r for r in cloud.taxes.recent if owner is None or r.owner == owner]
    now_ns = cloud.now_ns()
    seen = {
        "version": excise.__version__,
        "substrate": cloud.substrate.name,
        "isolation": cloud.substrate.isolation.name.lower(),
        "draining": cloud.draining,
        "now_s": cloud.wall_s(now_ns),
        "watching": owner is None,
        "states": dict(Counter(s.state.value for s in living)),
        "sandboxes": [_told(s, now_ns) for s in living[-SHOWN_SANDBOXES:]],
        "rollouts": [_rollout(each) for each in recent[-SHOWN_ROLLOUTS:]],
        "tax": _tax_of(recent, on=cloud.taxes.on),
    }
    return seen if owner is not None else seen | _of_all(cloud)


def _of_all(cloud: Cloud) -> dict[str, Any]:
    """What only a watcher sees: numbers of everybody together."""
    taxes = cloud.taxes
    return {
        "pool": _pool(cloud),
        "tax": {
            "on": taxes.on,
            "parts": list(PARTS),
            "spent_h": {part: taxes.spent_ns[part] / NS / 3600 for part in PARTS},
            "causes_h": {c: taxes.spent_ns[c] / NS / 3600 for c in (FAILED, LOST, STRAGGLER)},
            "rollouts": dict(taxes.rollouts),
            "actions": taxes.actions,
        },
        "latency_ms": {
            name: [(histogram.quantile_ns(q) or 0.0) / 1e6 for q in QUANTILES] + [histogram.count]
            for name, histogram in cloud.metrics.phases.items()
        },
        "series": [
            [cloud.wall_s(begun), count, p50 / 1e6, p99 / 1e6]
            for begun, count, p50, p99 in taxes.windows.series()
        ],
        "failures": [
            {"kind": kind, "phase": phase, "count": count}
            for (kind, phase), count in cloud.metrics.failures.most_common(20)
        ],
    }


def _rollout(one: Rollout) -> dict[str, Any]:
    return {
        "id": one.id,
        "door": one.door,
        "workload": one.workload,
        "ended_s": one.ended_s,
        "outcome": one.outcome,
        "actions": one.actions,
        "parts_ms": [ns / 1e6 for ns in one.parts],
    }


def _tax_of(rollouts: Sequence[Rollout], *, on: bool) -> dict[str, Any]:
    """Of one owner's last rollouts."""
    sums = [sum(each.parts[i] for each in rollouts) / NS / 3600 for i in range(len(PARTS))]
    failed = sum(sum(each.parts) for each in rollouts if each.outcome == "substrate_error")
    return {
        "on": on,
        "parts": list(PARTS),
        "spent_h": dict(zip(PARTS, sums, strict=True)),
        "causes_h": {FAILED: failed / NS / 3600},
        "rollouts": dict(Counter(each.outcome for each in rollouts)),
        "actions": sum(each.actions for each in rollouts),
    }


def timeline(cloud: Cloud, sandbox: Sandbox) -> dict[str, Any]:
    """One sandbox's actions by time: no command, and nothing of what it said."""
    at_ns = sandbox.asked_ns
    actions = list(sandbox.times)[-SHOWN_ACTIONS:]
    return {
        **_told(sandbox, cloud.now_ns()),
        "created_ms": (sandbox.created_ns - at_ns) / 1e6,
        "ready_ms": (sandbox.ready_ns - at_ns) / 1e6,
        "now_ms": (cloud.now_ns() - at_ns) / 1e6,
        "acts": [
            [(sent - at_ns) / 1e6, (got - at_ns) / 1e6, None if x is None else x / 1e6, code]
            for sent, got, x, code in actions
        ],
    }


def _told(sandbox: Sandbox, now_ns: int) -> dict[str, Any]:
    ends = sandbox.due_ns
    return {
        "id": sandbox.id,
        "owner": sandbox.owner,
        "state": sandbox.state.value,
        "door": sandbox.wanted.door,
        "template": sandbox.wanted.template or sandbox.spec.image,
        "age_s": (now_ns - sandbox.ready_ns) / NS,
        "ends_in_s": None if ends is None else (ends - now_ns) / NS,
        "acting": sandbox.acting,
        "actions": len(sandbox.times) + sandbox.times.dropped,
        "idle_s": (now_ns - sandbox.used_ns) / NS,
    }


def _pool(cloud: Cloud) -> dict[str, Any] | None:
    pool = cloud.substrate
    if not isinstance(pool, Pool):
        return None
    counts = pool.counts
    return {
        "status": pool.status(),
        "acquired": dict(counts.acquired),
        "saved_s": counts.saved_s,
        "kept_s": counts.kept_s,
        "stages": _stages(pool),
    }


def _stages(pool: Pool) -> list[dict[str, Any]]:
    """The copies worth keeping, those of one stage together, most worthy first."""
    found: dict[str, dict[str, Any]] = {}
    for copy in pool.worthy():
        kind, depth = str(copy.path[-1].kind), len(copy.path)
        one = found.setdefault(
            copy.key, {"kind": kind, "depth": depth, "copies": 0, "why": copy.why}
        )
        one["copies"] += 1
    return list(found.values())[:20]


def _gauges(cloud: Cloud) -> Iterator[tuple[str, str, dict[str, str], float]]:
    states = Counter(s.state for s in cloud.census.living())
    for state in State:
        if state is not State.ENDED:
            yield "excise_sandboxes", "Sandboxes by state.", {"state": state.value}, states[state]
    yield "excise_draining", "1 while nothing new is made.", {}, float(cloud.draining)
    for part in PARTS:
        seconds = cloud.taxes.spent_ns[part] / NS
        yield "excise_worker_seconds_total", "Worker time by part.", {"part": part}, seconds
    for cause in (FAILED, LOST, STRAGGLER):
        seconds = cloud.taxes.spent_ns[cause] / NS
        text = "Worker time lost, by cause; it is counted in the parts as well."
        yield "excise_lost_worker_seconds_total", text, {"cause": cause}, seconds
    for outcome, count in sorted(cloud.taxes.rollouts.items()):
        yield "excise_rollouts_total", "Rollouts that ended.", {"outcome": outcome}, count
    yield "excise_actions_total", "Actions that were answered.", {}, cloud.taxes.actions
