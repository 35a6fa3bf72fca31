"""Counts are what a sandbox wrote, and metrics what anybody may read of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from excise.warm.counts import LETTERS, PLACE, Reason, counted, metrics, taken


def test_every_reason_has_a_letter_of_its_own_here_and_in_c() -> None:
    header = (Path(__file__).parents[3] / "native/asked.h").read_text()
    assert set(LETTERS.values()) == set(Reason)
    assert {letter for letter in LETTERS if f"= '{letter}'," in header} == set(LETTERS)


@given(st.binary())
def test_whatever_is_written_is_counted_without_harm(written: bytes) -> None:
    told = counted(written)
    assert sum(told.values()) <= len(written)
    assert all(number > 0 for number in told.values())


def test_a_run_that_failed_after_it_was_served_is_no_served_one() -> None:
    assert counted(b"ssxf") == {Reason.SERVED: 1, Reason.FAILED: 1, Reason.FLAGS: 1}


def test_metrics_name_every_outcome() -> None:
    lines = metrics(Counter({Reason.SERVED: 2}))
    assert sum(line.startswith("excise_warm") for line in lines) == len(Reason)
    assert 'excise_warm_interpreter_runs_total{outcome="served"} 2' in lines


def test_counts_are_taken_from_an_upper_folder(tmp_path: Path) -> None:
    place = tmp_path / PLACE[1:]
    place.parent.mkdir(parents=True)
    place.write_bytes(b"ssf")
    assert taken(os.open(tmp_path, os.O_RDONLY)) == {Reason.SERVED: 2, Reason.FLAGS: 1}


def test_no_link_of_a_sandbox_is_followed(tmp_path: Path) -> None:
    place = tmp_path / PLACE[1:]
    place.parent.mkdir(parents=True)
    place.symlink_to("/etc/passwd")
    assert taken(os.open(tmp_path, os.O_RDONLY)) == {}
    place.unlink()
    os.mkfifo(place)
    assert taken(os.open(tmp_path, os.O_RDONLY)) == {}
