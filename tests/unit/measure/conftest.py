"""What the tests of the harness share: settings over fakes with written-down time."""

import pytest

from excise.clock import FakeClock
from excise.measure.plan import Slot
from excise.measure.record import Cell, StudyRecord
from excise.measure.trial import Setting
from excise.substrates.fake import Fake, Latencies
from excise.workloads.base import Listed, Step

LATENCIES = Latencies(create_s=0.5, ready_s=0.25, run_s=0.01, destroy_s=0.125)


def listed(*scripts: str, name="W", set_up=(), exit_code=0, persistent=False) -> Listed:
    steps = tuple(Step("command", s, exit_code=exit_code) for s in scripts)
    before = tuple(Step("set_up", s) for s in set_up)
    return Listed(name, lambda _: steps, make_set_up=lambda _: before, persistent_shell=persistent)


def cell(label="fake", workload="W", **more) -> Cell:
    return Cell(label=label, substrate="fake", workload=workload, **more)


def setting(workload, clock=None, *, latencies=LATENCIES, goldens=None, the_cell=None, **fake):
    substrate = Fake(latencies, clock=clock or FakeClock(), **fake)
    return Setting(the_cell or cell(workload=workload.name), substrate, workload, goldens=goldens)


def slot(the_cell=None, block=0) -> Slot:
    return Slot(1, block, 0, the_cell or cell(), 7)


def head(**changes) -> StudyRecord:
    from excise import __version__

    known = {
        "id": "s1",
        "started": "2026-01-01T00:00:00+00:00",
        "preset": "smoke",
        "seed": 1,
        "blocks": 2,
        "warm_ups": 1,
        "version": __version__,
        "cells": (cell(),),
        "host": {"cpu": "x", "cores": 2, "memory_bytes": 100},
    }
    return StudyRecord(**(known | changes))


@pytest.fixture
def rig():
    """The builders above, for tests (which import nothing from each other)."""

    class Rig:
        latencies = LATENCIES
        listed = staticmethod(listed)
        cell = staticmethod(cell)
        setting = staticmethod(setting)
        slot = staticmethod(slot)
        head = staticmethod(head)

    return Rig
