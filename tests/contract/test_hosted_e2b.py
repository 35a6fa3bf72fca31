"""The unmodified E2B SDK as a substrate against the contract, before jails with a pool in a service on this machine."""

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
from excise.substrates.hosted.e2b import open_substrate

TEXT = "the SDK hands output out as text: what is no UTF-8 is lost in it"


@pytest.mark.usefixtures("jail", "service", "variables")
class TestHostedE2B(Conformance):
    service: ClassVar[Any]
    deviations: ClassVar = dict.fromkeys(("binary_output", "stdin", "large_stdin"), TEXT)

    @staticmethod
    def served(folder: Path) -> Substrate:
        return pooled(Jail(leases=folder / "leases"), Rules(budget=Budget(sandboxes=12)))

    @pytest.fixture
    def variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("E2B_API_URL", "E2B_SANDBOX_URL"):
            monkeypatch.setenv(name, self.service.url)
        monkeypatch.setenv("E2B_API_KEY", self.service.token)

    def substrate(self) -> Substrate:
        return open_substrate(on="loopback")
