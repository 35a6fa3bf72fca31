"""Other limits for a jail that is there: what is written where, in an order the kernel takes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from excise.jail.control import BoxLimits
from excise.jail.relimit import UNIFIED, writes

V1 = ("memory", "pids", "cpu", "cpuset", "freezer")
WAS = BoxLimits(1 << 30, 0, 1 << 31, 512, 100_000, 0, "0")

limits = st.builds(
    BoxLimits,
    memory_bytes=st.sampled_from([0, 1 << 20, 1 << 30]),
    pids=st.sampled_from([0, 10, 20]),
    cpu_quota_us=st.sampled_from([0, 1000, 100_000]),
    cpuset=st.sampled_from(["", "0", "0,1"]),
)


@given(limits)
def test_the_same_limits_need_no_write(one) -> None:
    assert writes(one, one, V1) == writes(one, one, ()) == ()


def test_all_that_differs_is_written() -> None:
    now = replace(WAS, memory_bytes=1 << 20, pids=7, cpu_quota_us=5000, cpuset="1")
    assert [(w.file, w.text) for w in writes(WAS, now, V1) or ()] == [
        ("memory.limit_in_bytes", "1048576"),
        ("memory.memsw.limit_in_bytes", "1048576"),
        ("pids.max", "7"),
        ("cpu.cfs_quota_us", "5000"),
        ("cpuset.cpus", "1"),
    ]
    assert [(w.file, w.text) for w in writes(WAS, now, (UNIFIED,)) or ()] == [
        ("memory.max", "1048576"),
        ("pids.max", "7"),
        ("cpu.max", "5000 100000"),
        ("cpuset.cpus", "1"),
    ]


def test_no_limit_is_said_in_the_words_of_each_file() -> None:
    now = replace(WAS, memory_bytes=0, pids=0, cpu_quota_us=0)
    assert {w.text for w in writes(WAS, now, V1) or ()} == {"-1", "max"}
    assert {w.text for w in writes(WAS, now, (UNIFIED,)) or ()} == {"max", "max 100000"}


@given(limits, limits)
def test_memory_with_swap_is_never_bounded_below_memory(was, now) -> None:
    planned = writes(was, replace(now, cpuset=was.cpuset), V1)
    assert planned is not None
    memory = was.memory_bytes or 1 << 62
    swap = memory
    for write in planned:
        number = (
            (1 << 62) if write.text == "-1" else int(write.text) if write.kind == "memory" else 0
        )
        if write.file == "memory.limit_in_bytes":
            memory = number
        elif write.file == "memory.memsw.limit_in_bytes":
            swap = number
        assert memory <= swap


def test_what_was_settled_when_it_was_made_takes_another_jail() -> None:
    assert writes(WAS, replace(WAS, disk_bytes=1), V1) is None
    assert writes(WAS, replace(WAS, open_files=9), V1) is None
    assert writes(WAS, replace(WAS, cpuset=""), V1) is None
    assert writes(replace(WAS, cpuset=""), WAS, V1) is None
    assert writes(WAS, replace(WAS, pids=1), ()) is None
