"""The fake against the contract: it answers like a substrate, but there is no system in it."""

from __future__ import annotations

from excise.substrates.base import Substrate
from excise.substrates.conformance import CHECKS, Conformance
from excise.substrates.fake import Fake

HOLDS = {
    "runs_once_ready",
    "exit_codes",
    "missing_program",
    "shell_that_exits",
    "times_inside",
    "echo_is_echoed",
    "destroy_twice",
    "use_after_destroy",
    "names_are_not_reused",
    "large_stdin",
    "describes_itself",
    "sweep_spares_the_living",
}


class TestFake(Conformance):
    deviations = dict.fromkeys(
        sorted(set(CHECKS) - HOLDS), "a fake has neither processes nor a file system"
    )

    def substrate(self) -> Substrate:
        return Fake()
