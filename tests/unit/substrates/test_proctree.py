"""Who belongs to a command: decided from a process table, without touching a process."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.local.proctree import Process, members, started


def process(pid, parent=1, group=0, session=0, state="S"):
    return Process(pid, parent, group or pid, session or pid, state, started=0)


def test_the_marked_the_leaders_and_their_descendants_belong():
    table = [
        process(100),
        process(101, parent=100, group=100),
        process(102, parent=101, group=102, session=102),
        process(200),
        process(201, parent=200),
        process(300),
        process(301, parent=300),
    ]
    assert members(table, marked={200}, leader=100) == [100, 101, 102, 200, 201]


def test_the_dead_do_not_count_but_their_living_children_do():
    table = [process(100, state="Z"), process(101, parent=100)]
    assert members(table, marked={100}) == [101]


def test_parents_come_before_their_children_even_where_numbers_have_wrapped():
    shell, child = process(32000), process(300, parent=32000)
    table = [replace(child, started=8), replace(shell, started=7)]
    assert members(table, marked={300, 32000}) == [32000, 300]


def test_neither_init_nor_the_asking_process_is_ever_a_member():
    table = [process(1), process(os.getpid()), process(100, parent=os.getpid())]
    assert members(table, marked={1, os.getpid()}) == [100]


@given(st.lists(st.tuples(st.integers(2, 40), st.integers(1, 40)), max_size=40))
def test_no_tree_however_tangled_hangs_the_search(edges):
    table = [process(pid, parent) for pid, parent in edges]
    assert members(table, marked=set()) == []
    assert set(members(table, marked={5})) >= {pid for pid, _ in edges if pid == 5}


def test_a_process_has_one_start_and_a_missing_one_has_none():
    assert started(os.getpid()) == started(os.getpid())
    assert started(2**30) is None
