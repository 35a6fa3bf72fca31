"""What a cloud says, as what a caller can do about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import (
    DeadlineExceeded,
    DiskFull,
    ExciseError,
    InputError,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
    SubstrateUnavailable,
)
from excise.substrates.hosted.faults import Kind, Told, error_of, kind_of

CASES = [
    (Told("RateLimitException", "429: Rate limit exceeded"), Phase.CREATE, Kind.RATE_LIMITED, Overloaded),
    (Told("X", "you have reached the maximum number of concurrent E2B sandboxes", 429), Phase.CREATE,
     Kind.TOO_MANY_SANDBOXES, Overloaded),
    (Told("DaytonaForbiddenError", "Total CPU quota exceeded. Maximum allowed: 10", 403), Phase.CREATE,
     Kind.TOO_MANY_SANDBOXES, Overloaded),
    (Told("X", "your free credit is used up", 403), Phase.CREATE, Kind.NOT_PAID, SubstrateUnavailable),
    (Told("X", "payment required", 402), Phase.CREATE, Kind.NOT_PAID, SubstrateUnavailable),
    (Told("AuthenticationException", "401: invalid API key"), Phase.CREATE, Kind.UNAUTHORIZED, SubstrateUnavailable),
    (Told("AuthError", "Token missing. Could not authenticate client."), Phase.READY, Kind.UNAUTHORIZED,
     SubstrateUnavailable),
    (Told("SandboxException", "404: template 'nothing' not found", 404), Phase.CREATE, Kind.MISSING_IMAGE, InputError),
    (Told("DaytonaNotFoundError", "Snapshot nothing not found", 404), Phase.CREATE, Kind.MISSING_IMAGE, InputError),
    (Told("DaytonaNotFoundError", "Sandbox with ID x not found", 404), Phase.RUN, Kind.GONE, SandboxGone),
    (Told("SandboxNotRunningException", "the sandbox was not found"), Phase.RUN, Kind.GONE, SandboxGone),
    (Told("NotFoundException", "whatever"), Phase.RUN, Kind.BROKEN, SubstrateError),
    (Told("DaytonaBadRequestError", "cpu must be a number", 400), Phase.CREATE, Kind.REFUSED, InputError),
    (Told("NotEnoughSpaceException", "507"), Phase.RUN, Kind.DISK_FULL, DiskFull),
    (Told("X", "write failed: No space left on device"), Phase.RUN, Kind.DISK_FULL, DiskFull),
    (Told("ServiceBusyException", "try again", 503), Phase.CREATE, Kind.NO_CAPACITY, Overloaded),
    (Told("DaytonaError", "No available runners", 400), Phase.CREATE, Kind.NO_CAPACITY, Overloaded),
    (Told("DaytonaTimeoutError", "late"), Phase.CREATE, Kind.LATE, DeadlineExceeded),
    (Told("TimeoutError", ""), Phase.RUN, Kind.LATE, DeadlineExceeded),
    (Told("ConnectError", "connection refused"), Phase.READY, Kind.UNREACHABLE, SubstrateError),
    (Told("X", "bad gateway", 502), Phase.RUN, Kind.UNREACHABLE, SubstrateError),
    (Told("X", "oops", 500), Phase.RUN, Kind.NO_CAPACITY, Overloaded),
    (Told("ValueError", "oops"), Phase.RUN, Kind.BROKEN, SubstrateError),
]  # fmt: skip


@pytest.mark.parametrize(("told", "phase", "kind", "raised"), CASES)
def test_what_a_cloud_says_is_one_kind_and_one_exception(told, phase, kind, raised):
    assert kind_of(told, phase) is kind
    error = error_of(told, "cloud", phase)
    assert type(error) is raised
    assert "cloud" in str(error)
    if isinstance(error, SubstrateError):
        assert error.phase is phase


def test_a_limit_that_passes_says_when_and_one_that_does_not_says_never():
    headers = {"Retry-After": "7"}
    passing = error_of(Told("X", "slow down", 429, headers), "cloud", Phase.CREATE)
    assert (passing.retryable, passing.retry_after_s) == (True, 7.0)
    lasting = error_of(Told("X", "billing: card declined", 429, headers), "cloud", Phase.CREATE)
    assert (lasting.retryable, lasting.retry_after_s) == (False, None)
    assert Told("X", "", 429, {"retry-after": "Wed, 21 Oct 2026"}).retry_after_s is None


@given(
    st.text(max_size=40),
    st.text(max_size=200),
    st.none() | st.integers(100, 599),
    st.sampled_from(list(Phase)),
)
def test_anything_that_is_said_becomes_an_exception_of_ours(type_, message, status, phase):
    error = error_of(Told(type_, message, status), "cloud", phase)
    assert isinstance(error, ExciseError)
    assert "\n" not in str(error)
    if isinstance(error, SandboxGone):
        assert phase is not Phase.CREATE
