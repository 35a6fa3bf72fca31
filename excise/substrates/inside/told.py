"""What the agent cannot do, as callers of a substrate know it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from excise.agent.errors import AgentError, AgentGone, AgentRefused, AgentTimeout
from excise.errors import DeadlineExceeded, Phase, SubstrateError


def told(
    substrate: str, box: str, phase: Phase, lost: Callable[[], SubstrateError]
) -> AbstractContextManager[None]:
    """Raise what an error of the agent in `box` means; `lost` knows why its connection has ended."""
    return _Told(substrate, box, phase, lost)


@dataclass(frozen=True, slots=True)
class _Told(AbstractContextManager[None]):
    """Around every action: a generator would cost it a twentieth of a dispatch."""

    substrate: str
    box: str
    phase: Phase
    lost: Callable[[], SubstrateError]

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, AgentError):
            raise self._meaning(error) from error

    def _meaning(self, error: AgentError) -> Exception:
        name, phase = self.substrate, self.phase
        if isinstance(error, AgentRefused):
            return OSError(error.number, os.strerror(error.number), error.message)
        if isinstance(error, AgentTimeout):
            text = f"the agent of {self.box} does not answer: {error}"
            return DeadlineExceeded(text, substrate=name, phase=phase)
        if isinstance(error, AgentGone):
            return self.lost()
        return SubstrateError(f"{self.box}: {error}", substrate=name, phase=phase)
