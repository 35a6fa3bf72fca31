"""Output under a limit: nothing lost while it fits, head and tail and an exact count where it does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.capture import Capture


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(0, 60))
def test_head_and_tail_are_kept_and_every_byte_is_counted(chunks, limit):
    capture = Capture(limit)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    tail = limit // 2
    cut = whole[: limit - tail] + whole[len(whole) - tail :]
    assert capture.kept == (whole if len(whole) <= limit else cut)
    assert capture.total_bytes == len(whole)
    assert capture.truncated == (len(whole) > limit)


def test_memory_stays_bounded_however_much_comes():
    capture = Capture(1000)
    for _ in range(2000):
        capture.add(bytes(500))
    held = sum(map(len, capture._head)) + sum(map(len, capture._tail))
    assert held <= 1000 + 500
    assert capture.total_bytes == 1_000_000
