"""podman's Docker-compatible API against the contract. Needs a service: see docs/docker.md."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.container import open_substrate


@pytest.mark.podman
@pytest.mark.lab
@pytest.mark.usefixtures("podman")
class TestPodman(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate(engine="podman")
