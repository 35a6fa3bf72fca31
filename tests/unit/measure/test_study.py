"""A study under way, in written-down time: every slot once, in order, whatever happens to it."""

import asyncio
import gc

import pytest

from excise.clock import FakeClock
from excise.errors import Phase, SubstrateError
from excise.measure import noise, plan, store
from excise.measure.progress import Silent
from excise.measure.store import Ledger, RecordLost, read_study
from excise.measure.study import Conditions, run_loads, run_slots, tidy


class Told(Silent):
    """Keeps what a study reports of itself."""

    def __init__(self):
        self.planned, self.seconds, self.said, self.finished = 0, [], [], 0

    def say(self, text):
        self.said.append(text)

    def begin(self, slots):
        self.planned = len(slots)

    def ended(self, record, seconds):
        self.seconds.append(seconds)

    def finish(self):
        self.finished += 1


@pytest.fixture
def begun(rig, tmp_path):
    """Two cells, three blocks and a warm-up each, over fakes on one clock."""

    class Begun:
        directory = tmp_path / "s"
        clock = FakeClock(10**9)
        told = Told()
        cells = (rig.cell("one"), rig.cell("two"))
        slots = plan.slots(cells, blocks=3, warm_ups=1, seed=1)

        def settings(self, **fake):
            work = rig.listed("sleep 0.3")
            return {
                c.name: rig.setting(work, self.clock, the_cell=c, **fake)
                for c in (*self.cells, *self.loads)
            }

        loads = (rig.cell("one", load="burst:3"), rig.cell("two", load="staggered:2:1"))

        def run(self, settings=None, *, done=(), loads=False, **conditions):
            how = Conditions(study="s1", clock=self.clock, **conditions)
            settings = settings or self.settings()
            if not (self.directory / store.HEAD).exists():
                Ledger.create(self.directory, rig.head(cells=self.cells)).close()
            ledger, _ = Ledger.resume(self.directory)
            with ledger:
                known = {"done": done, "progress": self.told}
                running = (
                    run_loads(self.loads, settings, ledger, how, seed=1, **known)
                    if loads
                    else run_slots(self.slots, settings, ledger, how, **known)
                )
                return asyncio.run(running)

        @property
        def trials(self):
            return read_study(self.directory).trials

    return Begun()


def test_every_slot_becomes_one_record_in_the_planned_order(begun):
    assert begun.run() == 8
    assert [t.key for t in begun.trials] == [s.key for s in begun.slots]
    assert {t.outcome for t in begun.trials} == {"ok"}
    assert begun.told.planned == 8
    assert begun.told.seconds == pytest.approx([0.5 + 0.26 + 0.31 + 0.125] * 8)
    assert begun.told.finished == 1


def test_what_was_done_before_is_not_run_again(begun):
    done = {s.key for s in begun.slots[:5]}
    assert begun.run(done=done) == begun.told.planned == 3
    assert [t.key for t in begun.trials] == [s.key for s in begun.slots[5:]]


def test_a_trial_that_fails_is_a_record_and_the_study_goes_on(begun):
    def fail(phase, before):
        if phase is Phase.CREATE and before == 1:
            return SubstrateError("full", substrate="fake", phase=phase)
        return None

    begun.run(begun.settings(fail=fail))
    outcomes = [t.outcome for t in begun.trials]
    assert (len(outcomes), outcomes.count("substrate_error")) == (8, 2)


def test_a_record_that_cannot_be_written_ends_the_study_and_leaves_nothing_switched_off(
    begun, monkeypatch
):
    def append(self, *trials):
        raise RecordLost("no space")

    monkeypatch.setattr(Ledger, "append", append)
    with pytest.raises(RecordLost):
        begun.run()
    assert (begun.told.seconds, begun.told.finished) == ([], 1)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_trial_waits_for_a_quiet_machine_outside_its_own_time(begun, monkeypatch):
    told = iter([90.0, 90.0])
    monkeypatch.setattr(noise, "cpu_pressure", lambda: next(told, 0.0))
    begun.run(quiet_s=30.0)
    first, second = begun.trials[:2]
    assert (first.noise.waited_s, second.noise.waited_s) == (0.2, 0.0)
    assert first.marks["gone"] - first.marks["due"] == second.marks["gone"] - second.marks["due"]


def test_a_load_is_run_as_a_whole_and_only_once(begun):
    assert begun.run(loads=True) == 5
    assert begun.told.said == ["one/W@burst:3: 3 sandboxes", "two/W@staggered:2:1: 2 sandboxes"]
    burst = [t for t in begun.trials if t.load == "burst:3"]
    assert {t.intended_ns for t in burst} == {t.marks["due"] for t in burst}
    assert len({t.intended_ns for t in burst}) == 1
    done = {t.key for t in begun.trials}
    assert begun.run(loads=True, done=done) == 0
    assert begun.run(loads=True, done={k for k in done if "burst" in k[2]}) == 2


def test_a_sweep_that_fails_at_the_end_is_said_and_hides_nothing(begun):
    class Dead:
        async def sweep(self):
            raise SubstrateError("gone", substrate="fake", phase=Phase.DESTROY)

    asyncio.run(tidy([Dead()], begun.told))
    assert "gone" in begun.told.said[0]


def test_the_page_cache_is_dropped_before_every_trial_of_a_cold_cell_and_no_other(begun, rig):
    cold = rig.cell("two", cache="cold-page")
    begun.cells = (rig.cell("one"), cold)
    begun.slots = plan.slots(begun.cells, blocks=3, warm_ups=1, seed=1)
    dropped = []
    begun.run(drop_page_cache=lambda: dropped.append(begun.clock.now_ns()))
    marks = [t.marks["due"] for t in begun.trials if t.cache == "cold-page"]
    assert dropped == marks
    assert {t.cell: t.cache for t in begun.trials} == {
        "one/W": "warm",
        "two/W~cold-page": "cold-page",
    }
