"""What the service says no to, beyond what every substrate does. `problems` tells what each means over HTTP."""

from __future__ import annotations

from excise.errors import ExciseError, InputError, Overloaded, Phase

NAME = "service"


class Unauthorized(ExciseError):
    """No key, a key that is not known (any more), or one whose scope does not reach that far."""


class Conflict(ExciseError):
    """What was asked for contradicts what is there: a name in use, a key used for something else."""


class Unsupported(InputError):
    """The substrate that is served here cannot do that, whoever asks."""


class TooLarge(InputError):
    """More than one request, file or answer may hold."""


class Refused(Overloaded):
    """Not now. `theirs` tells whose limit it was: the caller's own (429) or this host's (503)."""

    def __init__(
        self, message: str, *, phase: Phase, retry_after_s: float, theirs: bool = False
    ) -> None:
        super().__init__(message, substrate=NAME, phase=phase, retryable=True)
        self.retry_after_s = retry_after_s
        self.theirs = theirs
