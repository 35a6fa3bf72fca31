"""The remote substrate against the contract, over loopback HTTP, before jails and their pool in a service's own thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from excise.jail.substrate import Jail
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.local import Local
from excise.substrates.remote import connect


@pytest.mark.usefixtures("jail", "service")
class TestRemoteJail(Conformance):
    service: ClassVar[Any]

    @staticmethod
    def served(folder: Path) -> Substrate:
        return pooled(Jail(leases=folder / "leases"), Rules(budget=Budget(sandboxes=12)))

    def substrate(self) -> Substrate:
        return connect(self.service.url, self.service.token)


@pytest.mark.usefixtures("service")
class TestRemoteLocal(Conformance):
    """Without streams, terminals or operations on files: the fallbacks of the service."""

    service: ClassVar[Any]
    deviations: ClassVar = {
        "out_of_each_others_reach": "a bare process sees the whole host: it isolates nothing"
    }

    @staticmethod
    def served(folder: Path) -> Substrate:
        return Local(folder / "local")

    def substrate(self) -> Substrate:
        return connect(self.service.url, self.service.token)
