"""Bytes become the same frames however they were cut, and garbage never becomes one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.agent import wire
from excise.agent.errors import AgentProtocolError
from excise.agent.frames import Frame, Frames
from tests.unit.agent import words

frames = st.builds(
    Frame,
    op=st.sampled_from(sorted(wire.ANSWERS)),
    flags=st.integers(0, 255),
    id=st.integers(0, 2**32 - 1),
    body=st.binary(max_size=300),
)


def encoded(some):
    return b"".join(words.frame(f.op, f.id, f.body, f.flags) for f in some)


def cut(data, places):
    edges = sorted({0, len(data), *(p % (len(data) + 1) for p in places)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(frames, max_size=8), st.lists(st.integers(0, 5000), max_size=30))
def test_frames_come_out_whole_however_the_bytes_were_cut(some, places):
    decoder = Frames()
    out = []
    for piece in cut(encoded(some), places):
        out += decoder.feed(memoryview(bytearray(piece)))
    assert out == some
    assert decoder.empty


@given(st.lists(frames, min_size=1, max_size=3), st.data())
def test_a_frame_that_is_cut_short_does_not_come_and_is_not_forgotten(some, data):
    stream = encoded(some)
    at = data.draw(st.integers(1, len(words.frame(0, 0, some[-1].body))))
    decoder = Frames()
    assert decoder.feed(stream[:-at]) == some[:-1]
    assert decoder.empty == (at == wire.HEAD_BYTES + len(some[-1].body))
    assert decoder.feed(stream[-at:]) == some[-1:]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_are_frames_or_the_beginning_of_one_or_an_error(data, places):
    decoder = Frames(limit=1000)
    out = []
    try:
        for piece in cut(data, places):
            out += decoder.feed(piece)
    except AgentProtocolError:
        return
    assert data.startswith(encoded(out))


@pytest.mark.parametrize(
    "head",
    [
        words.frame(0, 1),
        words.frame(wire.OP_EXEC, 1),
        words.frame(255, 1),
        words.frame(wire.OP_DONE, 1)[:6] + b"\1\0" + words.frame(wire.OP_DONE, 1)[8:],
        b"\xff" * 12,
        b"HTTP/1.1 400",
    ],
)
def test_what_no_agent_says_is_refused_and_so_is_everything_after_it(head):
    decoder = Frames()
    with pytest.raises(AgentProtocolError):
        decoder.feed(head)
    with pytest.raises(AgentProtocolError):
        decoder.feed(words.frame(wire.OP_DONE, 1))


def test_a_frame_over_the_limit_is_refused_by_its_head():
    with pytest.raises(AgentProtocolError, match="101 bytes, and 100 is the most"):
        Frames(limit=100).feed(words.frame(wire.OP_DATA, 1, bytes(101))[:12])


def test_what_was_fed_may_be_overwritten_afterwards():
    buffer = bytearray(words.frame(wire.OP_DATA, 7, b"kept"))
    (got,) = Frames().feed(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert got.body == b"kept"
