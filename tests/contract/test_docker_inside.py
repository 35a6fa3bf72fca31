"""An agent inside containers of the Docker Engine against the contract."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.container import open_substrate


@pytest.mark.docker
@pytest.mark.usefixtures("docker")
class TestDockerInside(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate(agent="inside")
