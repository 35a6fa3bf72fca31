"""What the agent says of a command's end, as the observation that every substrate gives."""

from __future__ import annotations

from excise.agent import wire
from excise.agent.answers import Result
from excise.errors import InputError
from excise.types import Fault, Observation

FAULTS = {
    wire.FAULT_MISSING_PROGRAM: Fault.MISSING_PROGRAM,
    wire.FAULT_NOT_EXECUTABLE: Fault.NOT_EXECUTABLE,
    wire.FAULT_MISSING_CWD: Fault.MISSING_CWD,
}


def observation_of(result: Result, *, user: str = "", oom: bool = False) -> Observation:
    """`oom` is for the driver to know: the kernel tells it to cgroups and not to parents.

    A sandbox that is too full to start another process fails the command and not the substrate.
    """
    if result.fault == wire.FAULT_NO_USER:
        raise InputError(
            f"the image has no user {user!r}: give one of its /etc/passwd, or a number"
        )
    started = result.end != wire.END_NOT_STARTED
    return Observation(
        exit_code=result.code,
        stdout=result.stdout,
        stderr=result.stderr,
        timed_out=result.end == wire.END_TIMEOUT,
        truncated=(
            result.stdout_total > len(result.stdout) or result.stderr_total > len(result.stderr)
        ),
        oom=oom,
        fault=FAULTS.get(result.fault),
        inside_ns=max(0, result.exited_ns - result.spawned_ns) if started else 0,
        cpu_ns=result.user_ns + result.system_ns,
        stdout_bytes=result.stdout_total,
        stderr_bytes=result.stderr_total,
    )
