"""A result becomes the observation that every substrate gives."""

import pytest

from excise.agent import wire
from excise.agent.answers import Result
from excise.agent.observation import observation_of
from excise.errors import InputError
from excise.types import Fault

PLAIN = Result(0, wire.END_EXIT, 0, 0, 100, 200, 900, 950, 30, 12, 4096, 3, 0, b"out", b"")


def test_an_ordinary_end():
    found = observation_of(PLAIN)
    assert (found.exit_code, found.stdout, found.stderr) == (0, b"out", b"")
    assert (found.inside_ns, found.cpu_ns) == (700, 42)
    assert (found.stdout_bytes, found.stderr_bytes) == (3, 0)
    assert (found.timed_out, found.truncated, found.oom, found.fault) == (False, False, False, None)


def test_a_time_out_keeps_the_agents_code():
    found = observation_of(PLAIN._replace(code=137, end=wire.END_TIMEOUT))
    assert (found.exit_code, found.timed_out) == (137, True)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_that_was_cut_is_called_truncated_and_counted_whole(stream):
    found = observation_of(PLAIN._replace(**{f"{stream}_total": 5_000_000_000}))
    assert found.truncated
    assert getattr(found, f"{stream}_bytes") == 5_000_000_000


@pytest.mark.parametrize(
    ("number", "fault", "code"),
    [
        (wire.FAULT_MISSING_PROGRAM, Fault.MISSING_PROGRAM, 127),
        (wire.FAULT_NOT_EXECUTABLE, Fault.NOT_EXECUTABLE, 126),
        (wire.FAULT_MISSING_CWD, Fault.MISSING_CWD, 126),
        (wire.FAULT_NO_ROOM, None, 126),
    ],
)
def test_a_command_that_was_not_started_took_no_time(number, fault, code):
    told = PLAIN._replace(end=wire.END_NOT_STARTED, fault=number, code=code, exited_ns=0)
    found = observation_of(told)
    assert (found.exit_code, found.fault, found.inside_ns) == (code, fault, 0)


def test_a_user_that_is_not_there_is_bad_input():
    with pytest.raises(InputError, match="no user 'nobody-here'"):
        observation_of(PLAIN._replace(fault=wire.FAULT_NO_USER), user="nobody-here")
