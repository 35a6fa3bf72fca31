"""What guest a spec asks for, and what no guest can be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.vm.config import Options, shape_of
from excise.types import GIB, MIB, Allow, Deps, Egress, Limits, Repo, Spec


def shape(spec=None, processors=4):
    return shape_of(spec or Spec(), "vm", processors)


def test_the_limits_are_the_hardware():
    found = shape(Spec(limits=Limits(cpus=1.5, memory_bytes=512 * MIB, pids=7, disk_bytes=GIB)))
    assert (found.memory_mib, found.processors, found.disk_bytes, found.pids) == (512, 2, GIB, 7)
    assert not found.network


def test_without_a_limit_a_guest_has_what_the_host_has_or_enough():
    free = Limits(cpus=None, memory_bytes=None, pids=None, disk_bytes=None)
    found = shape(Spec(limits=free), processors=3)
    assert (found.processors, found.pids) == (3, None)
    assert found.memory_mib >= 1024
    assert found.disk_bytes >= 4 * GIB


@given(st.integers(64 * MIB, 1 << 40), st.floats(0.01, 64), st.integers(1, 1 << 42))
def test_no_guest_has_more_than_its_limits_but_whole_processors(memory, cpus, disk):
    found = shape(Spec(limits=Limits(cpus=cpus, memory_bytes=memory, disk_bytes=disk)))
    assert found.memory_mib * MIB <= memory
    assert cpus <= found.processors < cpus + 1
    assert found.disk_bytes <= max(disk, 16 * MIB)
    assert found.disk_bytes % MIB == 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Spec(limits=Limits(memory_bytes=MIB)), "64 MiB of memory at least"),
        (Spec(deps=(Deps(("attrs==1",)),)), "lays no dependencies"),
        (Spec(egress=Allow(("a:1",))), "cannot limit egress"),
        (Spec(repo=Repo("/x", "c", path="../up")), "inside the workspace"),
        (Spec(repo=Repo("/x", "c", path="/abs")), "inside the workspace"),
    ],
)
def test_what_no_guest_can_be_is_bad_input(spec, said):
    with pytest.raises(InputError, match=said):
        shape(spec)


def test_egress_is_a_network_card():
    assert shape(replace(Spec(), egress=Egress.FULL)).network


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"machine": "zx81"}, "machine=zx81 is not one of"),
        ({"colour": "red"}, "no option colour"),
        ({"boot_s": "soon"}, "not a number of seconds"),
        ({"boot_s": "0"}, "not a number of seconds"),
        ({"boot_s": "inf"}, "not a number of seconds"),
    ],
)
def test_an_option_that_cannot_be_is_bad_input(given, said):
    with pytest.raises(InputError, match=said):
        Options.of(given)
