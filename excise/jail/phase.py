"""The errors of the jail, each naming the phase it broke in."""

from __future__ import annotations

from excise.errors import Phase, SandboxGone, SubstrateError, SubstrateUnavailable

NAME = "jail"


def failed(message: str, phase: Phase = Phase.CREATE, *, retryable: bool = False) -> SubstrateError:
    """The infrastructure failed in that phase."""
    return SubstrateError(message, substrate=NAME, phase=phase, retryable=retryable)


def gone(message: str, phase: Phase) -> SandboxGone:
    """There is no such jail (any more)."""
    return SandboxGone(message, substrate=NAME, phase=phase)


def unavailable(message: str) -> SubstrateUnavailable:
    """Jails cannot be made on this host as it is."""
    return SubstrateUnavailable(message, substrate=NAME, phase=Phase.CREATE)
