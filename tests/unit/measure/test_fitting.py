"""How many blocks fit into a time, and substrates that take part in fewer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.measure import fitting, plan
from excise.measure.decide import Asked, decide
from excise.measure.record import Cell


def cell(name: str, blocks: int | None = None) -> Cell:
    return Cell(label=name, substrate="fake", workload="T0", blocks=blocks)


@given(
    st.lists(st.tuples(st.floats(0.001, 100), st.none() | st.integers(1, 50)), min_size=1, max_size=5),
    st.floats(-10, 5000),
    st.integers(1, 100),
)  # fmt: skip
def test_as_many_blocks_as_fit_and_no_more(cells, left_s, blocks):
    cells = [(cell(f"s{i}", own), took) for i, (took, own) in enumerate(cells)]
    took_s = {c.name: t for c, t in cells}

    def seconds(count):
        return sum(t * min(count, c.blocks or blocks) for c, t in cells)

    found = fitting.blocks_that_fit(
        [c for c, _ in cells], took_s, left_s, blocks=blocks, warm_ups=0
    )
    assert 1 <= found <= blocks
    assert found == 1 or seconds(found) <= left_s
    assert found == blocks or seconds(found + 1) > left_s


def test_the_first_block_is_the_first_warm_up_or_the_first_that_counts():
    cells = [cell("a"), cell("b", 1)]
    slots = plan.slots(cells, blocks=3, warm_ups=2, seed=1)
    assert {s.block for s in fitting.first_block(slots)} == {-2}
    slots = plan.slots(cells, blocks=3, warm_ups=0, seed=1)
    assert [s.block for s in fitting.first_block(slots)] == [0, 0]


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), 10_000])
def test_a_time_that_makes_no_sense_is_refused(minutes):
    with pytest.raises(InputError, match="minutes"):
        fitting.checked(minutes)


async def decided(**asked):
    return await decide(Asked(substrates=("fake", "fake:ready_s=1"), workloads=("T0",), **asked))


def test_slow_substrates_take_part_in_the_first_blocks_only():
    import asyncio

    planned = asyncio.run(decided(blocks=10, fewer=("fake:ready_s=1=3",), warm_ups=0))
    blocks = {c.label: c.blocks for c in planned.cells}
    assert blocks["fake:ready_s=1"] == 3
    assert blocks["fake"] is None
    slots = plan.slots(planned.cells, blocks=10, warm_ups=planned.preset.warm_ups, seed=1)
    assert {s.block for s in slots if s.cell.label == "fake:ready_s=1"} == {0, 1, 2}
    assert min(s.block for s in slots) == 0


@pytest.mark.parametrize("said", ["fake", "fake=", "fake=0", "fake=x", "vm=3", "=3"])
def test_what_is_to_be_fewer_must_take_part_and_have_a_number(said):
    import asyncio

    with pytest.raises(InputError, match="--fewer"):
        asyncio.run(decided(fewer=(said,)))
