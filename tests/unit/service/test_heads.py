"""Request heads: what is read is what was meant, and what could be read in two ways is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.service.heads import BadHead, chunked, parse

TOKENS = st.text("abcdefgh-XYZ09", min_size=1, max_size=12)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


def head(*lines: str) -> bytes:
    return "\r\n".join(lines).encode("latin-1")


@given(st.dictionaries(TOKENS.map(lambda name: f"x-{name}".lower()), VALUES, max_size=8))
def test_headers_come_out_as_they_went_in(fields):
    lines = [f"{name}:  {value} " for name, value in fields.items()]
    found = parse(head("GET /a?b=c HTTP/1.1", "Host: h", *lines))
    assert (found.method, found.target, found.length, found.keeps) == ("GET", "/a?b=c", 0, True)
    assert {n: v for n, v in found.fields.items() if n != "host"} == {
        name: value.strip(" \t") for name, value in fields.items()
    }


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_parse_or_be_refused(data):
    with contextlib.suppress(BadHead):
        parse(data)


@pytest.mark.parametrize(
    "lines",
    [
        ("GET / HTTP/1.1",),
        ("GET / HTTP/1.1", "Host:"),
        ("GET  / HTTP/1.1", "Host: h"),
        ("get / HTTP/1.1", "Host: h"),
        ("GET http://h/ HTTP/1.1", "Host: h"),
        ("GET /\x01 HTTP/1.1", "Host: h"),
        ("GET / HTTP/2.0", "Host: h"),
        ("GET / HTTP/1.1", "Host: h", " folded"),
        ("GET / HTTP/1.1", "Host : h"),
        ("GET / HTTP/1.1", "Host: h", "no colon"),
        ("GET / HTTP/1.1", "Host: h", "Host: other"),
        ("GET / HTTP/1.1", "Host: h\nX: y"),
        ("GET / HTTP/1.1", "Host: h", "X: a\0b"),
        ("POST / HTTP/1.1", "Host: h", "Content-Length: 1", "Content-Length: 1"),
        ("POST / HTTP/1.1", "Host: h", "Content-Length: 1", "Transfer-Encoding: chunked"),
        ("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked, identity"),
        ("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: xchunked"),
        ("POST / HTTP/1.1", "Host: h", "Content-Length: +1"),
        ("POST / HTTP/1.1", "Host: h", "Content-Length: 1, 1"),
        ("POST / HTTP/1.1", "Host: h", "Content-Length: 0x1"),
        ("POST / HTTP/1.1", "Host: h", "X-API-Key: a", "X-API-Key: b"),
        ("GET / HTTP/1.1", "Host: h", *("X: y",) * 200),
    ],
)
def test_what_two_readers_could_understand_differently_is_refused(lines):
    with pytest.raises(BadHead):
        parse(head(*lines))


def test_a_connection_is_kept_only_where_both_agree():
    assert parse(head("GET / HTTP/1.1", "Host: h")).keeps
    assert not parse(head("GET / HTTP/1.1", "Host: h", "Connection: close")).keeps
    assert not parse(head("GET / HTTP/1.0")).keeps
    assert parse(head("GET / HTTP/1.1", "Host: h", "Upgrade: websocket")).upgrades
    assert parse(head("PUT / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked")).length is None


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.binary(max_size=10), st.data())
def test_a_body_in_chunks_comes_out_whole_and_only_when_it_is(pieces, behind, data):
    wire = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    assert chunked(wire + behind, 1000) == (b"".join(pieces), len(wire))
    cut = data.draw(st.integers(0, len(wire) - 1))
    assert chunked(bytearray(wire[:cut]), 1000) is None
    if pieces:
        with pytest.raises(BadHead):
            chunked(wire, sum(map(len, pieces)) - 1)


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"-1\r\n",
        b" 1\r\nx\r\n",
        b"1;a=b\r\nx\r\n",
        b"1\r\nxx\r\n",
        b"0\r\nA: b\r\n\r\n",
        b"1\nx\n",
        b"123456789\r\n",
    ],
)
def test_a_body_in_strange_chunks_is_not_understood_here(wire):
    with pytest.raises(BadHead):
        chunked(wire, 1000)


@given(st.binary(max_size=60))
def test_no_bytes_of_a_body_do_anything_but_come_out_or_be_refused(data):
    try:
        found = chunked(data, 50)
    except BadHead:
        return
    assert found is None or found[1] <= len(data)
