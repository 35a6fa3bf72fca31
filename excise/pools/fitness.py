"""Whether a sandbox may be handed out, must be proved first, or must go.

Trust is only lost, never assumed: what failed a probe, what a rollout left in doubt, and what cannot be proved
pristine after a reset is destroyed. A proof grows old, and an old one is renewed before the hand-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from excise.errors import InputError


class Verdict(StrEnum):
    """What is to be done with a sandbox."""

    TRUST = "trust"
    PROVE = "prove"
    RESET = "reset"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Trust:
    """How long a proof holds, and how many rollouts one sandbox may serve. One: never reused."""

    proof_s: float = 30.0
    uses: int = 1000
    oldest_s: float = 3600.0

    def __post_init__(self) -> None:
        if self.uses < 1 or self.proof_s < 0 or self.oldest_s <= 0:
            raise InputError(f"nothing could ever be handed out under {self}")


@dataclass(frozen=True, slots=True)
class Life:
    """What is known of one sandbox."""

    born_s: float
    proved_s: float
    uses: int = 0
    doubt: str | None = None
    """Why it cannot be trusted any more; the first reason stands."""


def before_use(life: Life, now_s: float, trust: Trust) -> Verdict:
    """May it be handed out?"""
    if life.doubt is not None or life.uses >= trust.uses or now_s - life.born_s >= trust.oldest_s:
        return Verdict.DESTROY
    return Verdict.TRUST if now_s - life.proved_s < trust.proof_s else Verdict.PROVE


def after_use(life: Life, now_s: float, trust: Trust, *, resettable: bool) -> Verdict:
    """May it be reset and used again?"""
    if not resettable:
        return Verdict.DESTROY
    fit = before_use(life, now_s, trust)
    return Verdict.DESTROY if fit is Verdict.DESTROY else Verdict.RESET


def is_stale(life: Life, now_s: float, trust: Trust) -> bool:
    """Whether its proof is so old that it had better be renewed before somebody has to wait for that."""
    return 0 < trust.proof_s <= 2 * (now_s - life.proved_s)
