"""Never more on a serial line than it keeps, everything in order, and nothing kept back for ever."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from excise.agent.wire import LINE_BYTES, LINE_TELL_BYTES
from excise.substrates.vm.paced import HIGH_WATER_BYTES, Paced


class Line(asyncio.WriteTransport):
    """Keeps what is written until the agent reads it, and says how much that was, as the agent does."""

    def __init__(self):
        super().__init__()
        self.kept, self.read, self.untold = bytearray(), bytearray(), 0
        self.closed = self.aborted = False

    def write(self, data):
        assert not self.closed
        self.kept += data
        assert len(self.kept) + self.untold <= LINE_BYTES

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True

    def take(self, count):
        """Some bytes are read; how many are told now, or 0 if that can wait."""
        self.read += self.kept[:count]
        self.untold += len(self.kept[:count])
        del self.kept[:count]
        if self.untold < LINE_TELL_BYTES:
            return 0
        told, self.untold = self.untold, 0
        return told


class Writer(asyncio.Protocol):
    paused = False

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False


@given(st.lists(st.one_of(st.binary(max_size=9000), st.integers(1, 4000))))
def test_what_is_written_arrives_in_order_and_the_line_is_never_full(steps):
    line, paced = Line(), None
    paced = Paced(line, Writer())
    written = b""
    for step in steps:
        if isinstance(step, bytes):
            paced.write(step)
            written += step
        elif told := line.take(step):
            paced.taken(told)
    paced.close()
    while line.kept:
        if told := line.take(1000):
            paced.taken(told)
    assert bytes(line.read) == written
    assert line.closed


def test_whoever_writes_too_much_waits_until_the_line_has_taken_it():
    line, writer = Line(), Writer()
    paced = Paced(line, writer)
    paced.write(bytes(HIGH_WATER_BYTES + 2 * LINE_BYTES))
    assert writer.paused
    for _ in range(3):
        if told := line.take(LINE_BYTES):
            paced.taken(told)
    assert not writer.paused


def test_after_an_abort_nothing_is_sent():
    line = Line()
    paced = Paced(line, Writer())
    paced.write(bytes(2 * LINE_BYTES))
    paced.abort()
    paced.write(b"late")
    paced.taken(LINE_BYTES)
    assert line.aborted
    assert len(line.kept) == LINE_BYTES
