"""An agent inside pods of a real cluster against the contract. Needs one: lab/kubernetes up."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.kubernetes import open_substrate


@pytest.mark.lab
@pytest.mark.usefixtures("kubernetes")
class TestKubernetesInside(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate(agent="inside", wait="answer")
