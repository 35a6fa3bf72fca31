"""Bubblewrap per command against the contract. Needs it installed: apt-get install bubblewrap."""

from __future__ import annotations

from typing import ClassVar

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.local.bwrap import Bwrap


@pytest.mark.usefixtures("bwrap")
class TestBwrap(Conformance):
    deviations: ClassVar = {"reset": "no process outlives its action, so it has none to end"}

    def substrate(self) -> Substrate:
        return Bwrap()
