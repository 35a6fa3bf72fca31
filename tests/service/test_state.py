"""What outlives the process: migrated, bounded, and told apart from what nobody can read."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from excise.cli import main
from excise.service import state as states
from excise.service.keys import Ring, new_key
from excise.service.sandbox import Ended
from excise.service.state import FILE, State, StateDamaged, key_file


@pytest.fixture
def state(tmp_path):
    with closing(State(tmp_path)) as opened:
        yield opened


def test_an_older_state_is_migrated_with_all_that_is_in_it_and_a_newer_one_is_refused(
    tmp_path, monkeypatch
):
    key, token = new_key("alice", 0.0)
    with key_file(tmp_path) as keys:
        keys.add(key)
    with closing(State(tmp_path)) as state:
        state.made("a", "alice", "handle", 1.0)
    more = (*states.MIGRATIONS, "ALTER TABLE sandboxes ADD COLUMN room TEXT DEFAULT 'small';")
    with monkeypatch.context() as later:
        later.setattr(states, "MIGRATIONS", more)
        with closing(State(tmp_path)) as state:
            assert state.unended() == [("a", "alice", "handle")]
            assert Ring(state.keys()).check(token, 1.0).owner == "alice"
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert database.execute("SELECT room FROM sandboxes").fetchall() == [("small",)]
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with pytest.raises(StateDamaged, match="newer than this package knows"):
        State(tmp_path)


def test_a_state_that_cannot_be_read_is_one_line_and_stays_as_it_is(tmp_path, capsys):
    (tmp_path / FILE).write_bytes(b"no database " * 1000)
    assert main(["serve", "-s", "fake", "--port", "0", "--state", str(tmp_path)]) != 0
    (said,) = capsys.readouterr().err.splitlines()
    assert "move it away" in said
    assert (tmp_path / FILE).read_bytes() == b"no database " * 1000


def test_what_ended_is_remembered_within_bounds_and_what_did_not_end_is_known_as_lost(
    state, monkeypatch
):
    monkeypatch.setattr(states, "ENDED_KEPT", 3)
    for number in range(10):
        state.made(str(number), "alice", f"h{number}", float(number))
        if number % 2:
            state.ended(str(number), str(Ended.DEADLINE), float(number))
    state.trim()
    state.settle()
    assert [id_ for id_, *_ in state.graves()] == ["5", "7", "9"]
    assert [id_ for id_, *_ in state.unended()] == ["0", "2", "4", "6", "8"]
    state.trim()
    state.settle()
    assert len(state.unended()) == 5, "what still lives is never forgotten"
    assert state.lost == 0
