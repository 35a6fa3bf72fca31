import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.clock import SystemClock
from excise.errors import InputError
from excise.measure import inside
from excise.measure.decide import sized
from excise.substrates.registry import open_substrate
from excise.types import GIB, Limits, Spec

ASKED = {"cpus": 1.0, "memory_bytes": 2 * GIB, "pids": 512, "disk_bytes": 4 * GIB}


def test_both_versions_of_control_groups_are_understood():
    second = "cores 1\ncpus 100000 100000\nmemory 2147483648\npids 512\n"
    first = "cores 1\ncpus 100000 100000\nmemory 2147483648\npids 512\n"
    for said in (first, second):
        seen = inside.read(said)
        assert seen == {"cores": "1", "cpus": "1", "memory_bytes": "2147483648", "pids": "512"}
        assert inside.otherwise(seen, ASKED) == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("cpus max 100000", "cpus none instead of 1"),
        ("cpus -1 100000", "cpus none instead of 1"),
        ("cpus 200000 100000", "cpus 2 instead of 1"),
        ("memory max", "memory bytes none instead of"),
        ("memory 9223372036854771712", "memory bytes none instead of"),
        ("pids max", "pids none instead of 512"),
    ],
)
def test_a_limit_that_is_not_there_is_said(said, words):
    (found,) = inside.otherwise(inside.read(said), ASKED)
    assert found.startswith(words)


def test_what_is_not_seen_and_what_was_not_asked_for_is_not_judged():
    assert inside.otherwise({}, ASKED) == ()
    assert inside.otherwise(inside.read("pids max"), {"pids": None}) == ()


@given(st.text(max_size=200))
def test_whatever_a_sandbox_says_is_read_or_left(said):
    assert set(inside.read(said)) <= {"cores", "cpus", "memory_bytes", "pids"}


def test_a_real_process_says_how_many_cores_it_may_use():
    spec = Spec(limits=Limits(cpuset=(0,)))
    seen = asyncio.run(inside.look(open_substrate("local"), spec, SystemClock()))
    assert seen["cores"] == "1"


def test_a_substrate_that_cannot_be_asked_says_nothing():
    assert asyncio.run(inside.look(open_substrate("fake"), Spec(), SystemClock())) == {}


def test_a_size_is_vcpus_and_memory():
    assert sized(None) == Limits()
    assert sized("1x2") == Limits()
    assert sized("1x4") == Limits(memory_bytes=4 * GIB)


@pytest.mark.parametrize("size", ["", "2", "x", "2x", "twoxfour", "0x2", "100000x2", "1x0", "nanx2", "1xinf", "1x1e99"])  # fmt: skip
def test_a_size_that_cannot_be_is_refused(size):
    with pytest.raises(InputError, match="size"):
        sized(size)
