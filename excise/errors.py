"""What can go wrong, by whose fault it is.

Three kinds of bad news, and only two of them are exceptions:

* a failed, missing, killed or timed-out *command* is an `Observation`;
* a failed *substrate* raises `SubstrateError`, which names the phase it broke in;
* bad *input* raises `InputError` before anything has been changed.

A failed *trial* is a recorded `Trial` with an outcome: never an exception, never dropped, never a zero.
"""

from __future__ import annotations

import errno
from enum import StrEnum

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""How a system says that a disk, or somebody's share of it, is full."""


class Phase(StrEnum):
    """The part of a rollout that the substrate was in."""

    CREATE = "create"
    READY = "ready"
    SET_UP = "set_up"
    RUN = "run"
    RESET = "reset"
    DESTROY = "destroy"


class ExciseError(Exception):
    """Everything this package raises on purpose."""


class InputError(ExciseError):
    """The caller asked for something that cannot be; the message says what to do instead."""


class DiskFull(ExciseError):
    """There is no room for what had to be written; what was written before is as it was."""


class TaskError(ExciseError):
    """A task cannot be rebuilt on this host now, or does not do what its descriptor says."""


class LayerError(ExciseError):
    """A layer cannot be built, kept or found on this host now; the store is as it was before."""


class ImageError(ExciseError):
    """An image is not what it says it is, or cannot be had from where it is said to be."""


class LifecycleError(ExciseError):
    """A verb that the sandbox's state does not allow, such as an action after the end."""


class SubstrateError(ExciseError):
    """The infrastructure failed, not the agent's command. Never to be trained on as a reward of 0."""

    retry_after_s: float | None = None
    """When a retry may succeed, where whoever failed knows that."""

    def __init__(
        self, message: str, *, substrate: str, phase: Phase, retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.substrate = substrate
        self.phase = phase
        self.retryable = retryable

    def __str__(self) -> str:
        again = " (a retry may succeed)" if self.retryable else ""
        return f"{self.substrate}: {self.phase} failed: {self.message}{again}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__)))


class SubstrateUnavailable(SubstrateError):
    """The substrate cannot be used on this host at all; `excise doctor` says why."""


class SandboxGone(SubstrateError):
    """The sandbox does not exist (any more): destroyed, reaped or never made."""


class DeadlineExceeded(SubstrateError):
    """The substrate did not answer in time. A command that runs too long is an Observation instead."""


class Overloaded(SubstrateError):
    """More rollouts wait than the queue takes; ask again when some have been served."""


def _rebuild(kind: type[SubstrateError], state: dict[str, object]) -> SubstrateError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error
