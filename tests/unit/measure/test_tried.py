"""A substrate that cannot have a workload keeps no other from being measured, where that is allowed."""

from __future__ import annotations

import asyncio

import pytest

from excise.errors import InputError
from excise.measure.conduct import conduct
from excise.measure.decide import Asked
from excise.measure.progress import Silent
from excise.substrates.fake import Fake
from excise.substrates.registry import TABLE, Row


class Refusing(Fake):
    """Never makes anything."""

    async def create(self, spec):
        raise InputError("there are none of these")


def open_substrate(**options):
    return Refusing()


async def availability(**options):
    from excise.substrates.base import Availability

    return Availability(True, "says so")


@pytest.fixture
def refusing(monkeypatch):
    """Beside it the cores, which a study binds this process to, are given back."""
    import os
    import sys

    cores = os.sched_getaffinity(0)

    monkeypatch.setitem(sys.modules, "refusing", sys.modules[__name__])
    monkeypatch.setitem(TABLE, "refusing", Row("refusing"))
    yield
    os.sched_setaffinity(0, cores)


def test_what_cannot_be_made_is_left_out_and_named(refusing, tmp_path):
    """`fake` stands for one that can, though it answers nothing right."""
    chosen = Asked(substrates=("refusing", "fake"), workloads=("T0",), blocks=1, warm_ups=0)
    with pytest.raises(InputError, match="none of these"):
        asyncio.run(conduct(chosen, tmp_path / "strict", Silent()))
    found = asyncio.run(conduct(chosen, tmp_path / "study", Silent(), forgiving=True))
    assert {c.label for c in found.record.cells} == {"bare", "bare-again", "fake"}
    assert found.record.skipped["refusing/T0"] == "there are none of these"
    assert {t.cell for t in found.trials} == {"bare/T0", "bare-again/T0", "fake/T0"}
