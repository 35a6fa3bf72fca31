"""What the agent cannot do, as callers of a substrate know it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from excise.agent.errors import AgentError, AgentGone, AgentRefused, AgentTimeout
from excise.errors import DeadlineExceeded, Phase, SubstrateError


@contextlib.contextmanager
def told(
    substrate: str, box: str, phase: Phase, lost: Callable[[], SubstrateError]
) -> Iterator[None]:
    """Raise what an error of the agent in `box` means; `lost` knows why its connection has ended."""
    try:
        yield
    except AgentRefused as error:
        raise OSError(error.number, os.strerror(error.number), error.message) from error
    except AgentTimeout as error:
        text = f"the agent of {box} does not answer: {error}"
        raise DeadlineExceeded(text, substrate=substrate, phase=phase) from error
    except AgentGone as error:
        raise lost() from error
    except AgentError as error:
        raise SubstrateError(f"{box}: {error}", substrate=substrate, phase=phase) from error
