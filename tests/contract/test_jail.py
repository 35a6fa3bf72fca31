"""Real jails against the whole contract. They need root, or a kernel that lets users make name spaces."""

from __future__ import annotations

import pytest

from excise.jail.substrate import Jail
from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance


@pytest.mark.usefixtures("jail")
class TestJail(Conformance):
    def substrate(self) -> Substrate:
        return Jail()
