"""Forms in several parts, whole however they are cut, and nothing of them taken for something else."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.service.daytona.multipart import (
    CLOSED,
    HEAD_BYTES,
    Begin,
    Data,
    End,
    Reader,
    begin_of,
    boundary_of,
    last,
    new_boundary,
    part,
)

NAMES = st.text(min_size=1, max_size=20).filter(lambda text: "\r" not in text and "\n" not in text)
BODIES = st.binary(max_size=300) | st.lists(
    st.sampled_from([b"\r\n", b"--", b"b", b"\r\n--b", b"\r", b"-", b"x"]), max_size=30
).map(b"".join)


def read(body: bytes, cuts: list[int], boundary: str = "b") -> list[tuple[str, bytes]]:
    reader = Reader(f"multipart/form-data; boundary={boundary}")
    found: list[tuple[str, bytes]] = []
    ended = 0
    points = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    for start, stop in pairwise(points):
        for event in reader.feed(body[start:stop]):
            match event:
                case Begin(name, _):
                    found.append((name, b""))
                case Data(data):
                    found[-1] = (found[-1][0], found[-1][1] + data)
                case End():
                    ended += 1
    reader.finish()
    assert ended == len(found)
    return found


@given(
    st.lists(st.tuples(st.sampled_from(["file", "files[0].path", "error"]), BODIES), max_size=5),
    st.lists(st.integers(0, 5000), max_size=20),
    st.binary(max_size=20),
)
def test_every_part_is_read_whole_wherever_the_body_is_cut(parts, cuts, after):
    boundary = new_boundary()
    body = b"".join(
        part(boundary, name, "f", kind="application/octet-stream") + data + CLOSED
        for name, data in parts
    )
    assert read(body + last(boundary) + after, cuts, boundary) == parts


@given(st.text(min_size=1, max_size=60))
def test_the_name_of_a_file_survives(name):
    head = part("b", "file", name, kind="text/plain").decode("utf-8", "surrogateescape")
    begin = begin_of(head.removeprefix("--b\r\n").removesuffix("\r\n\r\n"))
    assert begin == Begin("file", name)


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=10))
def test_any_bytes_are_read_or_refused(body, cuts):
    with contextlib.suppress(InputError):
        read(body, cuts)


@given(BODIES, st.integers(1, 400))
def test_a_body_that_is_cut_short_is_refused(data, less):
    whole = part("b" * 30, "file", "f", kind="x") + data + CLOSED + last("b" * 30)
    with pytest.raises(InputError, match="ends before"):
        read(whole[: max(0, len(whole) - 2 - less)], [], "b" * 30)


@pytest.mark.parametrize(
    "body",
    [
        b"--b\r\n" + b"X: " + b"y" * HEAD_BYTES * 2,
        b"--b" + b"x" * HEAD_BYTES * 2,
        b"--b garbage\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
        b"--b\r\n\r\nno headers\r\n--b--",
        (b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n" * 20_001) + b"--b--",
    ],
)
def test_forms_that_make_no_sense_or_no_end_are_refused(body):
    with pytest.raises(InputError):
        read(body, [])


@pytest.mark.parametrize(
    ("kind", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('multipart/form-data; boundary="a b"', b"a b"),
        ("Multipart/Form-Data; charset=x; Boundary=abc", b"abc"),
    ],
)
def test_a_boundary_is_found(kind, boundary):
    assert boundary_of(kind) == boundary


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary=" + "x" * 71]
)
def test_what_names_no_boundary_is_refused(kind):
    with pytest.raises(InputError):
        boundary_of(kind)


def test_memory_stays_small_whatever_the_size_of_a_part():
    reader = Reader("multipart/form-data; boundary=bbbb")
    list(reader.feed(part("bbbb", "file", "f", kind="x")))
    for _ in range(100):
        list(reader.feed(b"\r\n--bbb" * 1000))
        assert len(reader._carry) < 100
