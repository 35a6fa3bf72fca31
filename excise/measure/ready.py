"""Has a substrate that makes things ready do so before the first mark, and keeps what that took beside the trial."""

from __future__ import annotations

from dataclasses import dataclass, field

from excise.measure.record import Readied
from excise.substrates.base import Prepares, Spent, Substrate
from excise.types import Spec


@dataclass(frozen=True, slots=True)
class Readying:
    """What a substrate had spent before it was made ready; nothing where it makes nothing ready."""

    substrate: Prepares | None = None
    before: Spent = field(default_factory=Spent)

    def told(self, trials: int = 1) -> Readied | None:
        """What it spent and saved since, for each of so many trials."""
        if self.substrate is None:
            return None
        now = self.substrate.spent()
        return Readied(
            spent_s=(now.fill_s - self.before.fill_s) / trials,
            saved_s=(now.saved_s - self.before.saved_s) / trials,
            idle_s=(now.kept_s - self.before.kept_s) / trials,
        )


async def begin(substrate: Substrate, spec: Spec, copies: int = 1) -> Readying:
    """Return when it is as ready as it says it is."""
    if not isinstance(substrate, Prepares):
        return Readying()
    before = substrate.spent()
    await substrate.prepare(spec, copies)
    return Readying(substrate, before)
