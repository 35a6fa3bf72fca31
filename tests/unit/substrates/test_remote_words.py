"""The remote substrate's words: requests and answers as bytes, cut anywhere; errors there and back."""

from __future__ import annotations

import contextlib
import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError, Overloaded, Phase, SandboxGone, SubstrateError
from excise.substrates.remote.convert import (
    action_of,
    action_wire,
    observation_of,
    spec_of,
    spec_wire,
    wire_of,
)
from excise.substrates.remote.problems import error_of, refusal_of
from excise.substrates.remote.replies import BadAnswer, Reply
from excise.substrates.remote.requests import Target, query, request
from excise.substrates.remote.wire import ErrorWire
from excise.types import Action, Allow, Egress, Fault, Limits, Observation, Repo, Spec

BODIES = st.binary(max_size=300)


def chunked(body: bytes, sizes: list[int]) -> bytes:
    out, at = b"", 0
    for size in sizes:
        piece = body[at : at + size]
        at += size
        if piece:
            out += b"%x\r\n%b\r\n" % (len(piece), piece)
    if rest := body[at:]:
        out += b"%X;ext=1\r\n%b\r\n" % (len(rest), rest)
    return out + b"0\r\n\r\n"


def fed(data: bytes, cuts: list[int]) -> tuple[Reply, bytes]:
    reply, body, at = Reply(), b"", 0
    for cut in [*sorted({c % (len(data) + 1) for c in cuts}), len(data)]:
        if data[at:cut]:
            reply.feed(data[at:cut])
            body += reply.take()
        at = cut
    return reply, body


@given(
    BODIES,
    st.lists(st.integers(1, 50), max_size=8),
    st.lists(st.integers(0, 2000), max_size=8),
    st.booleans(),
)
def test_an_answer_is_the_same_however_it_is_cut(body, sizes, cuts, in_chunks):
    if in_chunks:
        data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, sizes)
    else:
        data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    reply, found = fed(data, cuts)
    assert reply.done
    assert found == body
    with pytest.raises(BadAnswer):
        reply.feed(b"x")


@given(BODIES, st.integers(0, 400))
def test_an_answer_that_is_cut_short_is_never_taken_for_a_whole_one(body, cut):
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body) + 1, body)
    reply, _ = fed(data[: cut % len(data)], [])
    assert not reply.done
    with pytest.raises(BadAnswer):
        reply.end()


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_answer_or_be_refused(data):
    with contextlib.suppress(BadAnswer):
        fed(data, [3, 50])


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
        b"HTTP/1.1 200 OK\r\n folded: x",
        b"HTTP/1.1 200 OK\r\nno colon",
        b"HTTP/2 200 OK",
        b"SSH-2.0-OpenSSH",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
    ],
)
def test_answers_that_could_be_read_in_two_ways_are_none(head):
    with pytest.raises(BadAnswer):
        fed(head + b"\r\n\r\nxx", [])


def test_a_chunk_that_is_longer_than_it_says_is_no_answer():
    with pytest.raises(BadAnswer):
        fed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", [])


def test_nothing_a_caller_gives_adds_a_header_or_a_path():
    target = Target.of("http://h:1/base/", "key")
    assert (
        request(target, "GET", "/v1/x")
        == b"GET /base/v1/x HTTP/1.1\r\nHost: h:1\r\nX-API-Key: key\r\n\r\n"
    )
    for value in ("a\r\nb", "a\0", "", " a", "ü"):
        with pytest.raises(InputError):
            request(target, "GET", "/", headers={"Action-Id": value})
    assert query("/f", path="/a b?&\r\n", none=None) == "/f?path=%2Fa+b%3F%26%0D%0A"
    assert Target.of("https://[::1]", "k").url == "https://[::1]:443"


@given(
    st.lists(st.text(max_size=5), max_size=4), st.one_of(st.none(), st.text(min_size=1, max_size=5)),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2), st.binary(max_size=9),
)  # fmt: skip
def test_actions_go_there_and_come_back(argv, cwd, env, stdin):
    action = Action(tuple(argv), cwd, env, stdin, "user", 3.5, 100)
    assert action_of(action_wire(action)) == action


@given(st.integers(0, 255), st.binary(max_size=9), st.booleans(), st.sampled_from([None, *Fault]))
def test_observations_go_there_and_come_back(code, out, timed_out, fault):
    found = Observation(code, out, out[::-1], timed_out, True, False, fault, 5, None, 9, 9)
    assert observation_of(wire_of(found)) == found


@pytest.mark.parametrize("egress", [Egress.NONE, Egress.FULL, Allow(("a:1", "b:2"))])
def test_specs_go_there_and_come_back(egress):
    spec = Spec("python:3.11", Repo("/src", "abc"), Limits(1.5, 2**30, 9, None), egress, user="u")
    assert spec_of(spec_wire(spec), Limits()) == spec
    with pytest.raises(InputError):
        spec_wire(Spec(limits=Limits(cpuset=(1,))))


def test_a_refusal_is_the_exception_that_it_is_everywhere_else():
    def told(kind: str, fault: str = "infrastructure", **more):
        return error_of(ErrorWire(kind, "said", fault, **more), Phase.RUN)

    assert isinstance(told("sandbox_gone"), SandboxGone)
    busy = told("overloaded", retryable=True, retry_after_s=4.0, phase="create")
    assert isinstance(busy, Overloaded)
    assert (busy.phase, busy.retryable, busy.retry_after_s) == (Phase.CREATE, True, 4.0)
    assert type(told("something new")) is SubstrateError
    assert isinstance(told("something new", "caller"), InputError)
    assert isinstance(told("file_not_found", "caller"), FileNotFoundError)
    assert told("file", "caller", errno=errno.ENOTEMPTY).errno == errno.ENOTEMPTY
    assert refusal_of(502, b"<html>").kind == "answer"
    assert refusal_of(503, b"").retryable
