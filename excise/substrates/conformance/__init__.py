"""The contract of a substrate as checks that anybody can run against their own, under pytest:

    class TestToy(Conformance):
        deviations = {"large_stdin": "the toy takes a kilobyte at most"}

        def substrate(self) -> Substrate:
            return Toy()

A check of an optional ability is skipped where the substrate does not have it. A deviation that is listed
and starts to hold fails, so that the list stays true.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from typing import Any, ClassVar

from excise.substrates.base import Closes, Substrate
from excise.substrates.conformance import abilities, commands, ends
from excise.substrates.conformance.rig import CHECKS, Check, Rig, hold
from excise.types import Spec

__all__ = ["CHECKS", "Check", "Conformance", "examine"]

_FILLED = (commands, ends, abilities)
"""Importing these has filled the table."""


async def examine(substrate: Substrate, name: str, spec: Spec | None = None) -> bool:
    """Run one check: True if it holds, False if it does not apply; else it raises."""
    check = CHECKS[name]
    if check.needs is not None and not isinstance(substrate, check.needs):
        return False
    try:
        await hold(Rig(substrate, spec or Spec()), check)
    finally:
        if isinstance(substrate, Closes):
            await substrate.close()
    return True


class Conformance:
    """Base of a pytest class with one test per check. Needs pytest alone, no plug-in."""

    spec: ClassVar[Spec] = Spec()
    deviations: ClassVar[Mapping[str, str]] = {}
    """Name of a check that is known not to hold, and why."""

    def substrate(self) -> Substrate:
        """A new substrate: every check gets its own, in an event loop of its own."""
        raise NotImplementedError("say which substrate to examine: override substrate()")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        if "check" in metafunc.fixturenames:
            metafunc.parametrize("check", list(CHECKS))

    def test_contract(self, check: str) -> None:
        import pytest

        reason = self.deviations.get(check)
        if reason is None:
            try:
                applies = asyncio.run(self._examine(check))
            except AssertionError as error:
                pytest.fail(f"{CHECKS[check].promise}\n{error}", pytrace=False)
            if not applies:
                pytest.skip("the substrate does not have this ability")
            return
        failure = self._failure(check)
        gc.collect()  # what broke off may have left a loop's debris: not into the next test
        if failure is None:
            pytest.fail(f"{check} holds now: remove it from the deviations", pytrace=False)
        pytest.xfail(f"known deviation: {reason} ({failure})")

    def test_deviations_are_checks_with_reasons(self) -> None:
        unknown = sorted(set(self.deviations) - set(CHECKS))
        if unknown or not all(self.deviations.values()):
            raise AssertionError(f"not checks, or without a reason: {unknown or self.deviations}")

    def _failure(self, check: str) -> str | None:
        """What a known deviation said as it failed; None if it did not."""
        try:
            asyncio.run(self._examine(check))
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the deviation)
            return f"{type(error).__name__}: {error}"
        return None

    async def _examine(self, check: str) -> bool:
        return await examine(self.substrate(), check, self.spec)
