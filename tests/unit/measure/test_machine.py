import asyncio
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.clock import FakeClock
from excise.measure import host, noise, placement
from excise.measure.noise import Reading, between, wait_until_quiet


def test_a_host_is_like_itself_and_unlike_one_with_another_kernel(tmp_path):
    facts = host.facts(tmp_path)
    assert facts["cores"] >= 1
    assert facts["storage"]
    assert host.unlike(facts, facts) == ()
    assert host.unlike(facts, {**facts, "kernel": "0.1"})[0].startswith("kernel: ")
    slightly = {**facts, "memory_bytes": facts["memory_bytes"] * 1.01}
    assert host.unlike(facts, slightly) == ()
    assert host.unlike(facts, {**facts, "memory_bytes": facts["memory_bytes"] * 2})
    assert host.unlike(facts, {**facts, "memory_bytes": None})


def reading(**changes):
    known = {
        "jiffies": (100, 0, 100, 1000, 0, 0, 0, 0),
        "psi_us": {"cpu": 10, "io": None, "memory": 0},
        "cpu_s": 1.0,
        "served_s": 3.0,
        "at_s": 7.0,
        "context_switches": 5,
        "major_faults": 0,
        "available_bytes": 4000,
    }
    return Reading(**(known | changes))


def test_noise_is_the_difference_of_two_readings():
    after = reading(
        jiffies=(140, 0, 110, 1045, 0, 0, 0, 5),
        psi_us={"cpu": 25, "io": None, "memory": 0},
        cpu_s=1.25,
        context_switches=9,
    )
    found = between(reading(), after, waited_s=0.5)
    assert found.steal_share == 0.05
    assert found.busy_share == 0.55
    assert (found.psi_cpu_us, found.psi_io_us, found.psi_memory_us) == (15, None, 0)
    assert (found.cpu_s, found.context_switches, found.waited_s) == (0.25, 4, 0.5)
    assert (found.available_before_bytes, found.available_bytes) == (4000, 4000)


def test_what_the_host_cannot_tell_is_none_and_not_zero():
    found = between(reading(jiffies=None), reading())
    assert (found.steal_share, found.busy_share, found.host_cpu_s) == (None, None, None)
    assert between(reading(), reading()).steal_share is None


def test_what_others_used_is_what_the_study_did_not(monkeypatch):
    monkeypatch.setattr(noise.os, "cpu_count", lambda: 2)
    ticks = noise.TICKS_PER_S
    used = (100 + 3 * ticks, 0, 100, 1000 + ticks, 0, 0, 0, 0)
    after = reading(jiffies=used, cpu_s=1.5, served_s=3.5, at_s=9.0)
    assert between(reading(), after, all_ours=True).other_share == 0.5
    assert between(reading(), after).other_share is None, "a daemon's work would count as others'"
    short = reading(jiffies=used, at_s=7.1)
    assert between(reading(), short, all_ours=True).other_share is None
    alone = reading(jiffies=used, cpu_s=9.0, at_s=9.0)
    assert between(reading(), alone, all_ours=True).other_share == 0
    assert between(reading(jiffies=None), after, all_ours=True).other_share is None


def test_a_child_that_lives_on_is_counted_with_us():
    before = Reading.take()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            until = time.monotonic() + 30
            while Reading.take().served_s < 0.05 and time.monotonic() < until:
                time.sleep(0.01)
            assert Reading.take().served_s > before.served_s
        finally:
            child.kill()


def test_a_real_reading_can_be_taken():
    found = between(Reading.take(), Reading.take())
    assert found.cpu_s >= 0
    assert found.runnable >= 0
    assert found.available_before_bytes > 0


@pytest.mark.parametrize(
    ("pressures", "waited"), [([50, 50, 10], 0.2), ([None], 0), ([0.0], 0), ([99] * 100, 1.0)]
)
def test_the_gate_waits_for_quiet_but_not_for_ever(monkeypatch, pressures, waited):
    told = iter(pressures)
    monkeypatch.setattr(noise, "cpu_pressure", lambda: next(told))
    assert asyncio.run(wait_until_quiet(FakeClock(), 1.0)) == pytest.approx(waited)


@given(st.sets(st.integers(0, 63), min_size=2), st.booleans())
def test_harness_and_sandboxes_never_share_a_core_if_there_are_two(cores, spread):
    placed = placement.place(cores, spread=spread)
    assert not set(placed.harness) & set(placed.sandboxes)
    assert set(placed.harness) | set(placed.sandboxes) <= cores
    assert (len(placed.sandboxes) == len(cores) - 1) or not spread


def test_a_sandbox_that_wants_more_cores_than_are_left_shares_the_harnesss_and_says_so():
    roomy = placement.place({0, 1, 2}, wanted=2)
    assert (roomy.harness, roomy.sandboxes) == ((0,), (1, 2))
    narrow = placement.place({0, 1}, wanted=2)
    assert (narrow.harness, narrow.sandboxes) == ((0,), (0, 1))
    assert "shared with the harness" in str(narrow)
    assert "shared" not in str(roomy)


def test_on_one_core_nothing_is_bound_and_that_is_said():
    placed = placement.place({3})
    assert (placed.harness, placed.sandboxes) == (None, None)
    assert "share one core" in str(placed)
