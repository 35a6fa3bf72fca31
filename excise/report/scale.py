"""From seconds per trajectory to a million of them: worker-hours, money, other lengths, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from excise.measure.rollouts import mean_of, rollout, tax_per_action_s
from excise.report.cells import Measured
from excise.report.values import PRICED_THINK_S, THINK_S, Advised, CellValues, Hours, Projected
from excise.tax.economics import Paid, Shape, advise, cost_usd
from excise.tax.interval import Interval
from excise.tax.prices import Price, PriceTable
from excise.tax.projection import Rollout, Scenario, project, worker_hours
from excise.tax.split import WorkTax

MILLION = 1_000_000
LENGTHS = (25, 50, 64, 100, 150, 200, 300)
GIB = 1024**3

Limits = Mapping[str, str | int | float | None]
Rows = Mapping[tuple[str, str], Sequence[Measured]]


def emulated(substrates: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """The labels whose hardware is a program: what they take says how quick that program is."""
    return tuple(s for s, facts in substrates.items() if facts.get("emulated") in {"yes", "true"})


def to_project(
    cells: Sequence[CellValues], substrates: Mapping[str, Mapping[str, str]]
) -> list[CellValues]:
    """Without those that are emulated: their totals times a million would be nobody's hours."""
    left_out = emulated(substrates)
    return [c for c in cells if c.label not in left_out]


def longest(cells: Sequence[CellValues], task: str | None) -> list[CellValues]:
    """Of every substrate the longest plain trajectory, where they all have the same length."""
    plain = [
        c for c in cells if c.tier.startswith("K") and not c.variant and c.task == task and c.ok
    ]
    most = max((c.actions for c in plain), default=0)
    return [c for c in plain if c.actions == most]


def shape(limits: Limits) -> Shape:
    """The sandbox as it would be billed: the study's limits, or the usual ones where it had none."""
    cpus, memory = limits.get("cpus"), limits.get("memory_bytes")
    known = Shape()
    return Shape(
        vcpus=float(cpus) if isinstance(cpus, int | float) and cpus else known.vcpus,
        memory_gib=memory / GIB if isinstance(memory, int | float) and memory else known.memory_gib,
    )


def hours(cells: Sequence[CellValues], prices: PriceTable, size: Shape) -> tuple[Hours, ...]:
    """The three kinds of worker-hours at a million trajectories, and what the sandboxes would cost."""
    return tuple(_hours(c, c.total_mean, prices, size) for c in cells if c.total_mean is not None)


def _hours(cell: CellValues, latency: Interval, prices: PriceTable, size: Shape) -> Hours:
    def occupied(think_s: float) -> Interval:
        thinking = cell.actions * think_s
        return latency.mapped(lambda s: worker_hours(MILLION, s + thinking))

    def usd(price: Price) -> Interval:
        thinking = cell.actions * PRICED_THINK_S
        return latency.mapped(lambda s: MILLION * cost_usd(price, size, s + thinking, active_s=s))

    tax = cell.tax_mean
    return Hours(
        label=cell.label,
        workload=cell.workload,
        actions=cell.actions,
        n=cell.n,
        failed=cell.failed,
        latency=latency,
        tax=None if tax is None else tax.mapped(lambda s: worker_hours(MILLION, s)),
        sandbox=latency.mapped(lambda s: worker_hours(MILLION, s)),
        occupied={str(t): occupied(t) for t in THINK_S},
        usd={p.provider: usd(p) for p in prices.price},
    )


def spreads(rows: Sequence[Hours], isolated: Sequence[str]) -> dict[str, float]:
    """Slowest over fastest among the isolated substrates, for every kind of hours; a description, no test."""
    mine = [r for r in rows if r.label in isolated]
    if len(mine) < 2:
        return {}
    kinds = {"sandbox": [r.sandbox.estimate for r in mine]}
    kinds |= {f"occupied {t} s": [r.occupied[str(t)].estimate for r in mine] for t in THINK_S}
    taxes = [r.tax.estimate for r in mine if r.tax is not None and r.tax.estimate > 0]
    if len(taxes) == len(mine):
        kinds["tax"] = taxes
    return {kind: max(values) / min(values) for kind, values in kinds.items()}


def projected(
    cells: Sequence[CellValues], rows: Rows, lengths: Sequence[int]
) -> tuple[Projected, ...]:
    """The same hours at other lengths, from what is paid once and what is paid per action."""
    found = []
    for cell in cells:
        mine = _mean_rollout(cell.label, rows[cell.label, cell.workload], lengths)
        for actions in LENGTHS:
            at = project(mine, Scenario(trajectories=MILLION, actions=actions))
            found.append(
                Projected(cell.label, actions, at.tax_hours, at.sandbox_hours, at.extrapolated)
            )
    return tuple(found)


def _mean_rollout(label: str, rows: Sequence[Measured], lengths: Sequence[int]) -> Rollout:
    return mean_of(
        [rollout(label, m.parts, m.taxed, tuple(lengths)) for m in rows if m.parts is not None]
    )


def advice(cells: Sequence[CellValues], rows: Rows) -> tuple[Advised, ...]:
    """What the tax of the isolated substrates says to do; nothing where none came through with a baseline."""
    paid = {}
    for cell in cells:
        taxed = [m.taxed for m in rows[cell.label, cell.workload] if m.taxed is not None]
        if cell.substrate not in NOT_ISOLATED and taxed:
            paid[cell.label] = [_paid(t) for t in taxed]
    if not paid:
        return ()
    return tuple(Advised(a.kind, a.text, a.sure) for a in advise(paid, actions=cells[0].actions))


NOT_ISOLATED = ("local", "local@swe-rex", "fake")
"""Substrates that are compared with, never chosen."""


def _paid(t: WorkTax) -> Paid:
    once = t.queue_ns + t.create_ns + t.ready_ns + t.set_up_tax_ns + t.cleanup_ns
    return Paid(once / 1e9, tax_per_action_s(t), t.cleanup_ns / 1e9)
