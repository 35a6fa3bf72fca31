"""User-mode Linux guests against the contract. Needs their kernel: lab/up vm."""

from __future__ import annotations

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.registry import open_substrate


@pytest.mark.lab
@pytest.mark.usefixtures("vm_uml")
class TestUserModeLinux(Conformance):
    def substrate(self) -> Substrate:
        return open_substrate("vm-uml")
