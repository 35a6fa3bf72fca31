"""The control codec: what it says is what the header says, and nothing that comes in breaks it."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.jail import control
from excise.jail.control import (
    Bind,
    BoxLimits,
    ControlError,
    Created,
    Fact,
    Failed,
    Gone,
    Ok,
    Op,
    Said,
)
from excise.types import Limits

HEADER = (Path(__file__).parents[3] / "native/control.h").read_text()
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
paths = st.from_regex(r"/[a-z/]{0,40}", fullmatch=True)


def numbers_of(prefix: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(rf"{prefix}_(\w+) = (\d+)", HEADER)}


def test_operations_and_facts_have_the_headers_numbers() -> None:
    both = {op.name: op.value for op in Op} | {said.name: said.value for said in Said}
    assert both == numbers_of("CTL")
    assert {fact.name: fact.value for fact in Fact} == numbers_of("FACT")


def test_limits_of_the_protocol_are_the_headers() -> None:
    enum = re.search(r"enum \{ CONTROL_VERSION[^}]*\}", HEADER)
    assert enum
    found = dict(re.findall(r"(\w+) = (\d+(?: << \d+)?)", enum[0]))
    shifted = {name: eval(value) for name, value in found.items()}
    assert shifted == {
        "CONTROL_VERSION": control.VERSION,
        "CONTROL_BYTES": control.MESSAGE_BYTES,
        "LOWER_LIMIT": control.MOST_LOWERS,
        "BIND_LIMIT": control.MOST_BINDS,
    }


@given(
    u32,
    u32,
    st.lists(u64, min_size=4, max_size=4),
    u32,
    u32,
    st.from_regex(r"[a-z]{0,64}", fullmatch=True),
)
def test_a_box_is_packed_as_the_header_lays_it_out(
    name: int, stack: int, sizes: list[int], quota: int, files: int, host: str
) -> None:
    disk, inodes, memory, pids = sizes
    limits = BoxLimits(disk, inodes, memory, pids, quota, files, "0-1")
    body = control.box(name, stack, limits, host)
    assert struct.unpack_from("<IIQQQQII", body) == (
        name,
        stack,
        disk,
        inodes,
        memory,
        pids,
        quota,
        files,
    )
    rest = body[struct.calcsize("<IIQQQQII") :]
    assert rest == struct.pack("<H", len(host)) + host.encode() + struct.pack("<H", 3) + b"0-1"


@given(
    u32,
    st.lists(paths | u32, min_size=1, max_size=20),
    st.lists(st.tuples(paths, paths), max_size=5),
)
def test_a_stack_can_be_read_back(
    name: int, lowers: list[str | int], binds: list[tuple[str, str]]
) -> None:
    shown = [Bind(source, "/x" + target) for source, target in binds]
    body = control.stack(name, lowers, shown)
    assert struct.unpack_from("<IHH", body) == (name, len(lowers), len(binds))
    at, found = 8, []
    for _ in lowers:
        kind, at = body[at], at + 1
        if kind:
            found.append(struct.unpack_from("<I", body, at)[0])
            at += 4
        else:
            length = struct.unpack_from("<H", body, at)[0]
            found.append(body[at + 2 : at + 2 + length].decode())
            at += 2 + length
    assert found == lowers
    assert len(body) - at == sum(4 + len(b.source) + len(b.target) for b in shown)


@given(st.binary(max_size=200))
def test_what_is_no_answer_is_refused_and_nothing_else_happens(message: bytes) -> None:
    try:
        answer = control.answer(message)
    except ControlError:
        return
    assert isinstance(answer, Ok | Failed | Created | Gone)


@given(u32, u32, st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_failure_says_what_was_being_done(tag: int, error: int, stage: str) -> None:
    data = stage.encode()
    message = struct.pack("<IIIH", Said.FAILED, tag, error, len(data)) + data
    assert control.answer(message) == Failed(tag, error, stage)


def test_a_death_and_a_birth_can_be_read() -> None:
    message = struct.pack("<IIIIiI", Said.GONE, 0, 7, 3, -9, 2)
    assert control.answer(message) == Gone(box=7, kit=3, end=-9, oom_kills=2)
    message = struct.pack("<IIII", Said.CREATED, 5, 1234, 3)
    assert control.answer(message) == Created(tag=5, pid=1234, kit=3)


def test_a_spawner_of_another_version_is_not_listened_to() -> None:
    assert control.hello(struct.pack("<II", control.VERSION, 5)) == Fact.FAST_ATTACH | Fact.IDMAP
    for body in (struct.pack("<II", control.VERSION + 1, 0), b"", b"12345"):
        with pytest.raises(ControlError):
            control.hello(body)


@pytest.mark.parametrize(
    ("lowers", "binds"),
    [
        ([], []),
        (["relative"], []),
        (["/x"] * 401, []),
        (["/" + "x" * 5000], []),
        (["/a\0b"], []),
        (["/x"], [Bind("/a", "/")]),
        (["/x"], [Bind("/a", "b")]),
        (["/x"], [Bind("/a", "/../b")]),
        (["/x"], [Bind("a", "/b")]),
        (["/x"], [Bind("/a", "/b")] * 65),
        (["/" + "x" * 1000] * 400, []),
    ],
)
def test_what_the_spawner_could_not_take_is_refused_before(
    lowers: list[str], binds: list[Bind]
) -> None:
    with pytest.raises(InputError):
        control.stack(1, lowers, binds)


@given(st.floats(0.0001, 512))
def test_a_share_of_a_cpu_is_never_less_than_asked_for(cpus: float) -> None:
    quota = BoxLimits.of(Limits(cpus=cpus)).cpu_quota_us
    assert quota >= 1000
    assert quota >= cpus * 100_000
    assert quota <= max(1000, cpus * 100_000 + 1)


def test_what_is_not_limited_is_zero() -> None:
    none = Limits(cpus=None, memory_bytes=None, pids=None, disk_bytes=None)
    assert BoxLimits.of(none) == BoxLimits()
    assert BoxLimits.of(Limits(cpuset=(0, 3))).cpuset == "0,3"
