"""What can go wrong between a client and the agent; a driver turns these into `SubstrateError` with its phase.

None of them is about a command: one that fails, is missing or runs too long is a `Result`.
"""

from __future__ import annotations

import errno

from excise.errors import ExciseError


class AgentError(ExciseError):
    """The agent, or the way to it, did not do what was asked."""


class AgentProtocolError(AgentError):
    """What came is not the protocol. The connection is of no use any more."""


class AgentGone(AgentError):
    """The other end of the connection is closed, or this end is."""


def of_another_process(pid: int) -> AgentGone:
    """A forked child has the parent's socket and not its conversation."""
    text = f"this connection belongs to process {pid}, and this is a child of it"
    return AgentGone(f"{text}: connect anew after a fork")


class AgentTimeout(AgentError):
    """The agent did not answer in time, though it should have even if the command hangs: kill the sandbox."""


class AgentRefused(AgentError):
    """The agent cannot do this one thing; the connection is as good as before."""

    def __init__(self, number: int, message: str) -> None:
        name = errno.errorcode.get(number, str(number))
        super().__init__(f"{message} ({name})" if message else name)
        self.number = number
        """The errno, such as `errno.ENOENT`."""
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return (AgentRefused, (self.number, self.message))
