"""The bare process against the contract, with what it does not even try listed."""

from __future__ import annotations

from typing import ClassVar

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.local import Local


class TestLocal(Conformance):
    deviations: ClassVar = {
        "out_of_each_others_reach": "a bare process sees the whole host: it isolates nothing"
    }

    def substrate(self) -> Substrate:
        return Local()
