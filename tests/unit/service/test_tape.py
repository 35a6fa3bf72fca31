"""What was written, for whoever comes to read it: all of it to who follows, a gap where it was forgotten, and bounded."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.service.tape import PIECE_BYTES, Tape

WRITES = st.lists(st.tuples(st.integers(1, 3), st.binary(min_size=1, max_size=40)), max_size=40)
KEEP = 64


async def heard(tape: Tape, since: int = 0) -> tuple[int | None, list[tuple[int, int]]]:
    """Where a gap ended, and every byte with its stream."""
    gap, found, at = None, [], since
    async for piece in tape.follow(since):
        if not piece.stream:
            assert not found, "what is kept has no hole"
            gap = piece.at
        else:
            assert piece.at == (at if gap is None or found else gap)
            found += [(piece.stream, byte) for byte in piece.data]
        at = piece.at + len(piece.data)
    return gap, found


@given(WRITES, st.integers(0, 500))
def test_who_comes_late_hears_what_is_kept_and_where_it_begins(writes, since):
    async def work():
        tape = Tape(KEEP)
        for stream, data in writes:
            tape.add(stream, data)
        tape.close()
        whole = [(stream, byte) for stream, data in writes for byte in data]
        assert tape.written == len(whole)
        assert tape.kept_bytes <= KEEP
        gap, found = await heard(tape, since)
        assert found == whole[since if gap is None else gap :]
        assert gap is None or since < gap

    asyncio.run(work())


@given(WRITES, st.integers(1, 3))
def test_the_writer_waits_for_who_was_announced_and_for_the_slowest(writes, followers):
    async def work():
        tape = Tape(KEEP, awaited=True)

        async def write() -> None:
            for stream, data in writes:
                tape.add(stream, data)
                assert tape.kept_bytes <= KEEP + 40 + PIECE_BYTES
                await tape.room()
            tape.close()

        async with asyncio.timeout(10):
            hearing = [asyncio.create_task(heard(tape)) for _ in range(followers)]
            await write()
            told = await asyncio.gather(*hearing)
        assert told == [(None, [(s, byte) for s, data in writes for byte in data])] * followers

    asyncio.run(work())


def test_one_piece_that_is_more_than_is_kept_is_a_gap_and_no_endless_wait():
    async def work():
        tape = Tape(KEEP)
        tape.add(1, b"x" * 1000)
        tape.close()
        assert await asyncio.wait_for(heard(tape), 5) == (1000, [])

    asyncio.run(work())


def test_an_error_is_heard_after_all_else():
    async def work():
        tape = Tape(KEEP)
        tape.add(2, b"last words")
        tape.close(OSError("gone"))
        hearing = tape.follow()
        assert await anext(hearing) == (0, 2, b"last words")
        with pytest.raises(OSError, match="gone"):
            await anext(hearing)

    asyncio.run(work())
