"""All that can be chosen about a pool, in one frozen value; every default serves a host of a few cores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from excise.errors import InputError
from excise.pools.failures import Retries
from excise.pools.fitness import Trust
from excise.pools.plan import Ageing
from excise.pools.size import Budget

OWNER = "owner"
"""The label of a spec that says whose rollout it is; rollouts without it share one owner."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The budget, and how patient, suspicious and eager the pool is.

    `creating` bounds how many sandboxes are made at once; the window below it finds itself.
    `create_within_s` bounds one creation up to its probe, so that one that wedges is given up.
    Where making one takes `fork_from_s` or more and the substrate can fork, a group is one and forks of it.
    Layers for rollouts that are only expected are built `laying` environments at a time, `lay_within_s` each.
    `from_base`: a sandbox that shares nothing but the base with what is wanted is taken there, as a partial hit.
    `waiting` and `wait_within_s` bound the queue: whoever comes too much is told at once.
    `yield_at` actions in flight hold filling ahead back, for `yield_for_s` at most.
    """

    budget: Budget = field(default_factory=lambda: Budget(sandboxes=32))
    trust: Trust = field(default_factory=Trust)
    retries: Retries = field(default_factory=Retries)
    ageing: Ageing = field(default_factory=Ageing)
    ahead: bool = True
    creating: int = 8
    create_within_s: float = 120.0
    fork_from_s: float = 1.0
    laying: int = 2
    lay_within_s: float = 1800.0
    from_base: bool = False
    waiting: int = 10_000
    wait_within_s: float = 600.0
    plan_every_s: float = 1.0
    yield_at: int = field(default_factory=lambda: os.cpu_count() or 1)
    yield_for_s: float = 5.0
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = {
            "creating": self.creating,
            "laying": self.laying,
            "waiting": self.waiting,
            "yield_at": self.yield_at,
        }
        times = {
            "create_within_s": self.create_within_s,
            "lay_within_s": self.lay_within_s,
            "wait_within_s": self.wait_within_s,
            "plan_every_s": self.plan_every_s,
        }
        for name, value in {**counts, **times}.items():
            if not value > 0:
                raise InputError(
                    f"{name}={value}: a pool with that serves nobody; give more than 0"
                )
        if any(not weight > 0 for weight in self.weights.values()):
            raise InputError(f"weights are more than 0, not {dict(self.weights)}")
