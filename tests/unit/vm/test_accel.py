"""Whether the hardware helps: what needs no probe, what does, and for how long an answer holds."""

from __future__ import annotations

import asyncio
import json

import pytest

from excise.substrates.vm.accel import Verdict, at_a_glance, find_out
from excise.substrates.vm.qemu_line import KVM, TCG

HELPS = "processor\t: 0\nflags\t\t: fpu vmx ssse3\nbugs\t\t:\n"
NO_HELP = "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\nbugs\t\t: vmx svm\n"


def test_a_node_without_a_processor_that_helps_proves_nothing():
    verdict = at_a_glance(NO_HELP, node_opens=True)
    assert verdict is not None
    assert verdict.emulated
    assert "neither vmx nor svm" in verdict.why


def test_a_processor_without_a_way_to_it_does_not_help():
    verdict = at_a_glance(HELPS.replace("vmx", "svm"), node_opens=False)
    assert verdict is not None
    assert verdict.emulated


def test_both_together_still_need_a_guest_that_boots():
    assert at_a_glance(HELPS, node_opens=True) is None


class Probe:
    def __init__(self, boots):
        self.boots, self.asked = boots, 0

    async def __call__(self):
        self.asked += 1
        return self.boots


@pytest.mark.parametrize(("boots", "how"), [(True, KVM), (False, TCG)])
def test_the_verdict_is_what_a_guest_does_and_holds_until_the_host_boots(boots, how, tmp_path):
    probe, cache = Probe(boots), tmp_path / "state" / "verdict"
    for _ in range(2):
        assert asyncio.run(find_out(cache, probe, lambda: (HELPS, True))).accel == how
    assert probe.asked == 1
    stale = json.loads(cache.read_text()) | {"boot": "another"}
    cache.write_text(json.dumps(stale))
    asyncio.run(find_out(cache, probe, lambda: (HELPS, True)))
    assert probe.asked == 2


@pytest.mark.parametrize("kept", ["", "{}", "[]", '{"boot": 1, "verdict": {"accel": "x"}}', "\0"])
def test_a_damaged_cache_is_no_verdict(kept, tmp_path):
    (tmp_path / "verdict").write_text(kept)
    verdict = asyncio.run(find_out(tmp_path / "verdict", Probe(True), lambda: (NO_HELP, True)))
    assert verdict == Verdict(TCG, "the processor shows neither vmx nor svm")
