"""Nothing of one run is in the next, nor in another sandbox; memory that nobody writes to is there once."""

from __future__ import annotations

import pytest

from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.types import Action

from .conftest import SPEC, Make, Place

pytestmark = pytest.mark.timeout(300)

CANARY = """
import builtins, json, logging, os, random, sys, threading, uuid, hypothesis, pytest
seen = [getattr(each, "canary", None) for each in (builtins, json, logging, sys, pytest, hypothesis)]
print(seen, os.environ.get("CANARY"), random.random(), uuid.uuid4(), logging.getLogger().handlers, len(threading.enumerate()))
for each in (builtins, json, logging, sys, pytest, hypothesis):
    each.canary = "sings"
os.environ["CANARY"] = "sings"
logging.getLogger().addHandler(logging.NullHandler())
random.seed(1)
json.dumps = None
"""


def test_what_a_run_changes_is_changed_in_no_other(make: Make) -> None:
    places = [make(), make()]
    said = [
        place.says(f"cat > c.py <<'END'\n{CANARY}\nEND\npython c.py")
        for place in places
        for _ in range(10)
    ]
    assert all(line.startswith("[None, None, None, None, None, None] None ") for line in said)
    assert len({line.split()[7] for line in said}) == 20, "random numbers that were drawn before"
    assert len({line.split()[8] for line in said}) == 20


def test_a_run_has_its_own_time_and_number(both: tuple[Place, Place]) -> None:
    _, warm = both
    script = (
        "import logging, os, threading, time; "
        "print(abs(logging._startTime - time.time()) < 30, threading.main_thread().native_id == os.getpid(), "
        "threading.get_native_id() == os.getpid(), time.monotonic() > 0, os.sched_getaffinity(0) == os.sched_getaffinity(os.getpid()))"
    )
    assert warm.says(f"python -c '{script}'").split() == ["True"] * 5


def test_memory_is_shared_between_runs(both: tuple[Place, Place]) -> None:
    """What eight runs hold for themselves alone is little beside what they have mapped."""
    _, warm = both
    script = "import time, pytest, hypothesis; time.sleep(3)"
    said = warm.says(
        f"for n in 1 2 3 4 5 6 7 8; do python -c '{script}' & pids=\"$pids $!\"; done; sleep 1.5; "
        "for p in $pids; do awk '/^(Rss|Pss):/ {print $1, $2}' /proc/$p/smaps_rollup; done; wait"
    )
    sums = {"Rss:": 0, "Pss:": 0}
    for line in said.splitlines():
        name, size = line.split()
        sums[name] += int(size)
    assert sums["Rss:"] > 0
    assert sums["Pss:"] < 0.75 * sums["Rss:"], said


def test_a_reset_a_snapshot_and_a_fork_are_as_warm(make: Make) -> None:
    place = make()
    run = place.runner.run
    place.says("echo 1 > here; python -c 'import json'")
    reference = run(place.jail.snapshot(place.box))
    forks = run(place.jail.fork(place.box, 2))
    for box in (place.box, *forks):
        fork = Place(place.runner, place.jail, box)
        assert fork.became("cat here; python -c 'import json'")[1] in (
            {"served": 1},
            {"addresses": 1},
        )
    run(place.jail.reset(place.box))
    assert place.told() == {}
    assert place.became("test ! -e here; python -c 'import json'")[1] in (
        {"served": 1},
        {"addresses": 1},
    )
    for box in forks:
        run(place.jail.destroy(box))
    run(place.jail.forget(reference))


def test_a_pool_keeps_warm_sandboxes_apart_from_others(make: Make) -> None:
    from dataclasses import replace

    place = make()
    run = place.runner.run

    async def through() -> None:
        pool = pooled(place.jail, Rules(budget=Budget(4)))
        for warm, wanted in ((None, {}), ("auto", {"served": 1})):
            box = await pool.create(replace(SPEC, warm=warm))
            seen = await pool.run(box, Action(("python", "-c", "print(1)")))
            assert seen.stdout == b"1\n"
            assert await pool.warmth(box) in (wanted, {"addresses": 1})
            await pool.destroy(box)

    run(through())


def test_counts_of_ended_sandboxes_are_kept(make: Make) -> None:
    place = make()
    place.says("python -c 'print(1)'; python -u -c 'print(1)'")
    before = place.jail.warmed.copy()
    place.runner.run(place.jail.destroy(place.box))
    gained = place.jail.warmed - before
    assert gained["flags"] == 1
    assert gained.total() == 2


def test_a_proof_holds_for_a_warm_sandbox(make: Make) -> None:
    place = make()
    place.says("python -c 'print(1)'")
    place.runner.run(place.jail.reset(place.box))
    assert place.runner.run(place.jail.prove(place.box)).pristine
