"""The framing of a persistent shell: whatever arrives in whatever pieces, output is exact."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.shell import ARGV, OPENING, Exchange, Frame

MARK = Exchange.of("true").mark


def pieces(data, cuts):
    at = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


NOISE = st.lists(st.one_of(st.binary(max_size=9), st.sampled_from([b"\x1e", MARK[:7], MARK[:-1]])))
OUTPUT = NOISE.map(b"".join).filter(lambda output: MARK not in output)


@given(OUTPUT, st.integers(0, 255), st.binary(max_size=9), st.lists(st.integers(0)))
def test_output_value_and_rest_are_found_in_any_pieces(output, code, rest, cuts):
    frame = Frame(MARK, 10_000)
    behind = b""
    for piece in pieces(output + MARK + str(code).encode() + b"\x1e" + rest, cuts):
        behind += piece if frame.done else frame.feed(piece)
    assert (frame.output.kept, frame.value, behind) == (output, str(code).encode(), rest)


@given(OUTPUT, st.lists(st.integers(0)))
def test_without_a_mark_everything_is_output(output, cuts):
    frame = Frame(MARK, 10_000)
    for piece in pieces(output, cuts):
        frame.feed(piece)
    frame.end()
    assert (frame.output.kept, frame.done) == (output, False)


def test_bash_understands_what_is_sent():
    scripts = ["x=5; cd /", "echo $x $PWD; (exit 9)", "echo 'it''s'; false"]
    exchanges = [Exchange.of(s) for s in scripts]
    sent = OPENING + b"".join(e.request for e in exchanges)
    said = subprocess.run(ARGV, input=sent, capture_output=True, check=True).stdout
    answers = []
    for exchange in exchanges:
        frame = Frame(exchange.mark, 1000)
        said = frame.feed(said)
        answers.append((frame.output.kept, frame.value))
    assert answers == [(b"", b"0"), (b"5 /\n", b"9"), (b"its\n", b"1")]


def test_a_zero_byte_is_bad_input():
    with pytest.raises(InputError):
        Exchange.of("echo \0")
