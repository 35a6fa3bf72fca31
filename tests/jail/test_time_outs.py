"""A time-out ends everything that its action started, however it hides, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.jail.blocking import Jail, Sandbox
from excise.types import Action

HIDING = {
    "in a session of its own": "exec sleep 1000",
    "without what it was marked with": "ulimit -x 5; exec sleep 1000",
    "marked as one that is to come": "ulimit -x $(( $(ulimit -H -x) - 1 )); exec sleep 1000",
    "as somebody else": "exec setpriv --reuid 33 --clear-groups sleep 1000",
    "under another name": "exec -a init sleep 1000",
}


@pytest.fixture
def box(able: None, tmp_path: Path) -> Iterator[Sandbox]:
    with Jail(leases=tmp_path / "leases") as jail, jail.create() as made:
        yield made


def sleeping(box: Sandbox) -> int:
    count = box.run(Action.shell("grep -lx sleep /proc/[0-9]*/comm | wc -l"))
    return int(count.stdout)


@pytest.mark.parametrize("how", sorted(HIDING))
def test_a_process_that_hides_ends_with_its_action(box: Sandbox, how: str) -> None:
    box.write("hide", HIDING[how].encode())
    hide = "setsid -f bash hide; until grep -lqx sleep /proc/[0-9]*/comm; do :; done; sleep 1000"
    seen = box.run(Action.shell(hide, timeout_s=1.5))
    assert seen.timed_out
    assert sleeping(box) == 0


def test_what_an_earlier_action_left_behind_goes_on(box: Sandbox) -> None:
    box.run(Action.shell("setsid -f sleep 1000"))
    for _ in range(3):
        assert box.run(Action.shell("sleep 1001", timeout_s=0.3)).timed_out
        assert box.run(Action(("true",))).ok
    assert sleeping(box) == 1
