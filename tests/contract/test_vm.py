"""QEMU guests against the contract. Needs QEMU and a kernel: lab/up vm. Without help of the hardware they are emulated.

Every guest is a copy of one that has booted, because a boot takes seconds where the processor is a program; what is
different about guests that boot themselves is in tests/system/test_vm.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar

import pytest

from excise.substrates.base import Substrate
from excise.substrates.conformance import Conformance
from excise.substrates.vm.config import Options
from excise.substrates.vm.guests import Guests
from excise.substrates.vm.qemu import Qemu


class Kept(Qemu):
    """Closed by every check: what has booted stays for the next one."""

    async def close(self) -> None:
        await Guests.close(self)


@pytest.fixture(scope="module")
def kept() -> Iterator[None]:
    TestQemu.shared = Kept(Options.of({"start": "fork"}))
    yield
    asyncio.run(Qemu.close(TestQemu.shared))


@pytest.mark.lab
@pytest.mark.usefixtures("vm", "kept")
@pytest.mark.timeout(120)
class TestQemu(Conformance):
    shared: ClassVar[Kept]

    def substrate(self) -> Substrate:
        return self.shared
