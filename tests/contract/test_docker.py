"""The Docker Engine against the contract. Needs an engine: lab/docker up."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.container import open_substrate


@pytest.mark.docker
@pytest.mark.usefixtures("docker")
class TestDocker(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate()
