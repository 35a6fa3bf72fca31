"""Who made a container, and whether that process is certainly dead."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.container import owner
from excise.substrates.container.owner import Owner, is_orphan

ME = Owner("boot", "4026531836", 100, 5000)


def test_an_owner_survives_being_a_label() -> None:
    marked = owner.labels(ME, {"team": "a"})
    assert marked["team"] == "a"
    assert marked[owner.MINE] == "1"
    assert owner.owner_of(marked) == ME


def test_given_labels_cannot_disown_a_container() -> None:
    marked = owner.labels(ME, {"excise.owner": "nobody", "excise": "0"})
    assert owner.owner_of(marked) == ME
    assert marked[owner.MINE] == "1"


@given(st.text())
def test_any_text_is_an_owner_or_none(text: str) -> None:
    parsed = Owner.parse(text)
    assert parsed is None or isinstance(parsed.pid, int)


def test_a_dead_process_leaves_orphans() -> None:
    assert is_orphan(replace(ME, pid=7), ME, None)


def test_a_reused_process_id_does_not_hide_an_orphan() -> None:
    assert is_orphan(replace(ME, pid=7, started_ticks=1), ME, 999)


def test_a_living_process_leaves_none() -> None:
    assert not is_orphan(ME, ME, ME.started_ticks)


def test_owners_that_cannot_be_judged_from_here_are_spared() -> None:
    assert not is_orphan(None, ME, None)
    assert not is_orphan(replace(ME, boot="other machine"), ME, None)
    assert not is_orphan(replace(ME, pid_space="other container"), ME, None)


def test_a_start_time_tells_the_living_from_the_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert owner.started_ticks(child.pid) is not None
    finally:
        child.kill()
        child.wait()
    assert owner.started_ticks(child.pid) is None
    assert owner.myself().pid == os.getpid()
