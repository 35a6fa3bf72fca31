"""A pool is a substrate: it keeps the contract of what it pools, for every sandbox it reuses too."""

from __future__ import annotations

from typing import ClassVar

import pytest

from excise.jail.substrate import Jail
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.local import Local

ISOLATES_NOTHING = "a bare process sees the whole host: it isolates nothing"


class TestPoolOfLocal(Conformance):
    deviations: ClassVar = {"out_of_each_others_reach": ISOLATES_NOTHING}

    def substrate(self) -> Substrate:
        return pooled(Local(), Rules(budget=Budget(sandboxes=6)))


class TestPoolOfOneThatIsUsedAgain(Conformance):
    """With nothing made ahead and every sandbox reset, what one check leaves behind meets the next hand-out."""

    deviations: ClassVar = {"out_of_each_others_reach": ISOLATES_NOTHING}

    def substrate(self) -> Substrate:
        return pooled(Local(), Rules(ahead=False))


class TestPoolThatNeverUsesTwice(Conformance):
    deviations: ClassVar = {"out_of_each_others_reach": ISOLATES_NOTHING}

    def substrate(self) -> Substrate:
        return pooled(Local(), Rules(trust=Trust(uses=1)))


@pytest.mark.usefixtures("jail")
class TestPoolOfJail(Conformance):
    """The cheapest to create and the most able: streams, snapshots, forks and proofs go through the pool."""

    def substrate(self) -> Substrate:
        return pooled(Jail(), Rules(budget=Budget(sandboxes=12)))
