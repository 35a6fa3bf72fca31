"""Resets of a whole `Jail`: quick because the next jail is there already, and never more than are needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.jail.blocking import Jail, Sandbox
from excise.types import Action


@pytest.fixture
def box(able: None, tmp_path: Path) -> Iterator[Sandbox]:
    with Jail(leases=tmp_path / "leases") as jail, jail.create() as made:
        yield made


def agents(box: Sandbox) -> int:
    """How many jails their spawner has."""
    spawner = Path(f"/proc/{box.pid}/stat").read_text().rpartition(")")[2].split()[1]
    children = Path(f"/proc/{spawner}/task/{spawner}/children").read_text().split()
    names = [Path(f"/proc/{pid}/comm") for pid in children]
    return sum(name.read_text() == "excise-agent\n" for name in names if name.exists())


def test_resets_in_a_row_each_give_a_fresh_jail_and_do_not_pile_up(box: Sandbox) -> None:
    seen = {box.pid}
    for _ in range(12):
        box.write("dirt", b"dirt")
        box.reset()
        assert box.run(Action.shell("ls")).stdout == b""
        seen.add(box.pid)
    assert len(seen) == 13
    for _ in range(500):  # those that were thrown away may be dying yet
        if agents(box) <= 3:
            return
        time.sleep(0.02)
    pytest.fail(f"{agents(box)} jails where one, and two ahead, would do")
