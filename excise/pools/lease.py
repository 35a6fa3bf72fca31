"""One rollout's request for a sandbox, its hold on one, and what it is told of either."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import dataclass

from excise.errors import ExciseError, Phase, SubstrateError
from excise.pools.box import Box
from excise.pools.counts import Acquired, Got
from excise.pools.environments import Environment
from excise.pools.stage import whole_price_s
from excise.scheduler.assign import Match
from excise.types import Handle, Spec


@dataclass(slots=True)
class Request:
    """One rollout that waits for its sandbox."""

    spec: Spec
    environment: Environment
    owner: str
    asked_s: float
    future: asyncio.Future[Handle]
    attempts: int = 1
    failures: int = 0
    new: bool = True
    """Until its first turn is over: what it is given in that was there before it came."""
    found: bool = False


@dataclass(slots=True)
class Lease:
    """One rollout's hold on one sandbox, and what it got."""

    box: Box
    spec: Spec
    owner: str
    acquired: Acquired
    acting: int = 0


def acquired_by(
    request: Request, box: Box, match: Match, waited_s: float, base_s: float, advance_s: float
) -> Acquired:
    """What the rollout got, and why. A sandbox that was made because it asked is a miss."""
    path, depth = request.environment.path, match.shared
    made_for_it = box.life.born_s >= request.asked_s and box.life.uses == 0
    if made_for_it and not request.found:
        why = "nothing idle shared a stage with it; made for it"
        return Acquired(Got.MISS, why, waited_s, 0.0, 0, len(path), request.attempts)
    if depth < len(path):
        got, why = Got.PARTIAL, f"shares {path[depth - 1].kind} and all below"
        base_s = max(0.0, base_s - advance_s)
    else:
        got, why = Got.EXACT, "kept ready" if box.life.uses == 0 else "reset and proved"
    saved_s = base_s + whole_price_s(path) - match.left_s
    return Acquired(got, why, waited_s, saved_s, depth, len(path), request.attempts)


def told(error: BaseException) -> ExciseError:
    """The same bad news for one more of those who wait: an exception of its own, with the first as its cause."""
    if isinstance(error, ExciseError):
        again = copy(error)
    else:
        text = f"{type(error).__name__}: {error}"
        again = SubstrateError(text, substrate="pool", phase=Phase.CREATE)
    again.__cause__ = error
    return again
