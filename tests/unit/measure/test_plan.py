import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.measure import plan
from excise.measure.decide import _take_part
from excise.measure.record import Cell

CELLS = st.lists(
    st.builds(
        Cell,
        label=st.sampled_from(["bare", "docker", "vm"]),
        substrate=st.just("fake"),
        workload=st.sampled_from(["T0", "T2:a", "K50:a", "K150:a"]),
        blocks=st.none() | st.integers(0, 6),
        warm_ups=st.none() | st.integers(0, 3),
    ),
    unique_by=lambda c: c.name,
    min_size=1,
)


@given(CELLS, st.integers(1, 6), st.integers(0, 3), st.integers())
def test_every_block_is_a_permutation_of_its_cells(cells, blocks, warm_ups, seed):
    slots = plan.slots(cells, blocks=blocks, warm_ups=warm_ups, seed=seed)
    assert len({s.key for s in slots}) == len(slots)
    for cell in cells:
        mine = [s.block for s in slots if s.cell == cell]
        n = blocks if cell.blocks is None else min(cell.blocks, blocks)
        assert [b for b in mine if b >= 0] == list(range(n))
        assert sum(b < 0 for b in mine) == (warm_ups if cell.warm_ups is None else cell.warm_ups)
    assert [s.block for s in slots] == sorted(s.block for s in slots)
    for block in {s.block for s in slots}:
        here = [s.position for s in slots if s.block == block]
        assert here == list(range(len(here)))


@given(CELLS, st.integers(1, 5), st.integers())
def test_the_same_seed_gives_the_same_order(cells, blocks, seed):
    def once():
        return plan.slots(cells, blocks=blocks, warm_ups=1, seed=seed)

    assert once() == once()


def test_orders_differ_between_blocks_seeds_and_sessions():
    cells = [Cell(label=f"s{i}", substrate="fake", workload="T0") for i in range(8)]

    def order(seed, session):
        slots = plan.slots(cells, blocks=2, warm_ups=0, seed=seed, session=session)
        return [tuple(s.cell.label for s in slots if s.block == b) for b in (0, 1)]

    assert len({*order(1, 1), *order(2, 1), *order(1, 2)}) == 6


def test_the_order_of_a_seed_never_changes():
    cells = [Cell(label=f"s{i}", substrate="fake", workload="T0") for i in range(6)]
    slots = plan.slots(cells, blocks=1, warm_ups=0, seed=1)
    assert [s.cell.label for s in slots] == ["s3", "s1", "s5", "s0", "s2", "s4"]


@pytest.mark.parametrize("name", plan.PRESETS)
def test_every_workload_has_a_bare_baseline_in_each_of_its_blocks(name):
    how = plan.preset(name)
    cells = plan.cells([plan.Chosen("docker", "docker")], how)
    slots = plan.slots(cells, blocks=how.blocks, warm_ups=how.warm_ups, seed=1)
    there = {(s.block, s.cell.name) for s in slots}
    for slot in slots:
        bare = f"{plan.BARE}/{slot.cell.workload}"
        assert (slot.block, bare) in there
    by_label = Counter((c.label, c.workload) for c in cells)
    assert max(by_label.values()) == 1
    assert any(c.label == plan.TWIN for c in cells)


def test_several_tasks_give_each_workload_once_per_task():
    cells = plan.cells([], plan.preset("smoke"), tasks=("a", "b"), twin=False)
    names = [c.workload for c in cells]
    assert names.count("T0") == 1
    assert {"T2:a", "T2:b"} <= set(names)


def test_a_cell_with_fewer_blocks_never_has_more_than_the_study():
    from dataclasses import replace

    how = replace(plan.preset("smoke"), blocks=1)
    assert all((c.blocks or 0) <= 1 for c in plan.cells([], how))


def test_a_smoke_study_of_bare_jail_and_docker_is_short_enough_for_a_newcomer():
    how = plan.preset("smoke")
    chosen = [plan.Chosen(name, name) for name in ("jail", "docker")]
    cells = plan.cells(chosen, how)
    lengths = {"T0": 1, "T1": 6, "T2": 14, "K10": 10, "K50": 50, "K150": 150}
    slots = plan.slots(cells, blocks=how.blocks, warm_ups=how.warm_ups, seed=1)
    assert sum(lengths[s.cell.workload.partition(":")[0]] for s in slots) <= 2250
    counted = {(s.cell.label, s.cell.workload) for s in slots if not s.warm_up}
    assert len(counted) == 3 * 6 + 3, "every substrate on every tier and length, the twin on tiers"


def test_a_cold_cache_doubles_every_cell_but_the_twin_and_keeps_names_apart():
    chosen = [plan.Chosen("docker", "docker")]
    how = plan.preset("smoke")
    warm = plan.cells(chosen, how, workloads=("T0",))
    both = plan.cells(chosen, how, workloads=("T0",), caches=("cold-page",))
    assert [c for c in both if c.cache == "warm"] == list(warm)
    cold = [c.name for c in both if c.cache == "cold-page"]
    assert cold == ["bare/T0~cold-page", "docker/T0~cold-page"]


def test_one_substrate_named_twice_is_refused():
    with pytest.raises(InputError, match="two substrates"):
        plan.cells([plan.Chosen("docker", "docker")] * 2, plan.preset("smoke"))
    with pytest.raises(InputError):
        plan.cells([plan.Chosen(plan.TWIN, "docker")], plan.preset("smoke"))


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(InputError, match="smoke, quick, paper, tail"):
        plan.preset("huge")


def test_load_cells_have_names_of_their_own():
    chosen = [plan.Chosen("docker", "docker")]
    names = [c.name for c in plan.load_cells(chosen, ["burst:4"])]
    assert names == ["bare/T0@burst:4", "docker/T0@burst:4"]


def test_without_root_the_jail_takes_part_only_where_it_is_named():
    _, skipped = asyncio.run(_take_part((), root=False))
    assert "--substrate jail" in skipped["jail"]
    _, skipped = asyncio.run(_take_part(("fake",), root=False))
    assert not skipped


@given(seed=st.integers(0, 2**32 - 1), interval_s=st.floats(0.1, 10))
def test_a_trial_begins_within_the_interval_and_at_the_same_moment_each_time(
    seed: int, interval_s: float
) -> None:
    slot = plan.Slot(1, 0, 0, Cell(label="a", substrate="fake", workload="T0"), seed)
    moment = plan.moment_s(slot, interval_s)
    assert 0.0 <= moment <= interval_s
    assert plan.moment_s(slot, interval_s) == moment


def test_trials_begin_all_over_the_interval() -> None:
    cell = Cell(label="a", substrate="fake", workload="T0")
    all_slots = plan.slots([cell], blocks=200, warm_ups=0, seed=7)
    tenths = {int(10 * plan.moment_s(slot, 1.0)) for slot in all_slots}
    assert tenths == set(range(10))
