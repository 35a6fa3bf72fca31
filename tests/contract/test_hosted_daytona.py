"""The unmodified Daytona SDK as a substrate against the contract, before jails with a pool in a service on this machine."""

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
from excise.substrates.hosted.daytona import open_substrate

TEXT = "the SDK hands output out as text: what is no UTF-8 is lost in it"
AT_THE_END = "a command is one request: what it has printed when its time is over is not told"


@pytest.mark.usefixtures("jail", "service", "variables")
class TestHostedDaytona(Conformance):
    service: ClassVar[Any]
    deviations: ClassVar = {
        **dict.fromkeys(("binary_output", "stdin", "large_stdin"), TEXT),
        "time_out": AT_THE_END,
    }

    @staticmethod
    def served(folder: Path) -> Substrate:
        return pooled(Jail(leases=folder / "leases"), Rules(budget=Budget(sandboxes=12)))

    @pytest.fixture
    def variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DAYTONA_API_URL", f"{self.service.url}/api")
        monkeypatch.setenv("DAYTONA_API_KEY", self.service.token)

    def substrate(self) -> Substrate:
        return open_substrate(on="loopback")
