"""gVisor's kernel below the Docker Engine against the contract. Needs an engine that knows it: lab/up docker gvisor."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.container import open_substrate


@pytest.mark.docker
@pytest.mark.lab
@pytest.mark.usefixtures("gvisor")
class TestGvisorInside(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate(runtime="runsc", agent="inside")
