"""Answers come back as they were given; what is cut, padded or invented never becomes a value."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.agent import answers
from excise.agent.answers import ActionState, Entry, Hello, Process, Result
from excise.agent.errors import AgentError, AgentProtocolError
from tests.unit.agent import words

u8, u16 = st.integers(0, 255), st.integers(0, 65535)
u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
texts = st.binary(max_size=20).map(
    lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
)
results = st.builds(
    Result, st.integers(-(2**31), 2**31 - 1), u8, u8, u16, *[u64] * 9,
    st.binary(max_size=40), st.binary(max_size=40),
)  # fmt: skip
entries = st.builds(Entry, u32, u32, u32, u64, i64, u32, texts, texts)
actions = st.builds(ActionState, u32, u32, st.booleans(), u64, texts)
processes = st.builds(Process, u32, u32, u32, texts)


def listed(things, one):
    return struct.pack("<I", len(things)) + b"".join(map(one, things))


def action_body(a):
    return struct.pack("<IIBQ", a.id, a.pid, a.ended, a.started_ns) + words.string(a.words)


def process_body(p):
    return struct.pack("<III", p.pid, p.parent, p.action) + words.string(p.name)


@given(results)
def test_a_result_comes_back_as_it_was_given(result):
    assert answers.result(words.result_body(result)) == result


@given(entries, st.lists(entries, max_size=4), st.lists(actions, max_size=4))
def test_lists_come_back_as_they_were_given(entry, some, running):
    assert answers.entry(words.entry_body(entry)) == entry
    assert answers.entries(words.entries_body(some)) == some
    assert answers.actions(listed(running, action_body)) == running


@given(st.lists(processes, max_size=4), u32, texts)
def test_processes_and_errors_come_back_as_they_were_given(some, number, message):
    assert answers.process_list(listed(some, process_body)) == some
    found = answers.error(struct.pack("<I", number) + words.string(message))
    assert (found.number, found.message) == (number, message)


def test_a_greeting_says_who_and_what():
    body = struct.pack("<III", 1, 42, 2) + words.string("stream pty")
    assert answers.hello(body) == Hello(1, 42, 2, frozenset({"stream", "pty"}))


DECODERS = {
    "result": (answers.result, words.result_body(Result(*range(13), b"out", b"err"))),
    "hello": (answers.hello, struct.pack("<III", 1, 2, 3) + words.string("a")),
    "pong": (answers.pong, bytes(8)),
    "error": (answers.error, bytes(4) + words.string("no")),
    "digest": (answers.digest, bytes(40)),
    "entry": (answers.entry, words.entry_body(Entry(1, 2, 3, 4, 5, 6, "a", "b"))),
    "entries": (answers.entries, words.entries_body([Entry(1, 2, 3, 4, 5, 6, "a", "b")])),
    "actions": (answers.actions, listed([ActionState(1, 2, True, 3, "sh")], action_body)),
    "environment": (answers.environment, struct.pack("<Q", 2) + b"A=1\0B=\0"),
    "taken": (answers.taken, bytes(4)),
    "processes": (answers.process_list, listed([Process(1, 2, 3, "sh")], process_body)),
}


@pytest.mark.parametrize("name", DECODERS)
def test_an_answer_that_is_cut_short_or_goes_on_is_refused(name):
    decode, whole = DECODERS[name]
    decode(whole)
    for length in range(len(whole)):
        with pytest.raises(AgentProtocolError):
            decode(whole[:length])
    with pytest.raises(AgentProtocolError):
        decode(whole + b"x")


@pytest.mark.parametrize("name", DECODERS)
@given(body=st.binary(max_size=120))
def test_garbage_is_a_value_or_an_error_of_ours(name, body):
    decode, _ = DECODERS[name]
    with contextlib.suppress(AgentError):
        decode(body)


def test_a_number_of_entries_that_cannot_be_is_refused_before_they_are_made():
    with pytest.raises(AgentProtocolError, match="4294967295 entries in 4 bytes"):
        answers.entries(b"\xff" * 4)


def test_a_string_with_a_zero_in_it_is_refused():
    with pytest.raises(AgentProtocolError, match="zero"):
        answers.error(bytes(4) + words.string("a\0b"))


def test_what_is_no_variable_is_left_out_of_an_environment():
    body = struct.pack("<Q", 4) + b"A=b=c\0=x\0alone\0ODD=\xff\0"
    assert answers.environment(body) == {"A": "b=c", "ODD": "\udcff"}


def test_a_piece_of_a_file_may_be_empty_but_not_without_its_size():
    assert answers.piece(bytes(8)).data == b""
    with pytest.raises(AgentProtocolError):
        answers.piece(bytes(7))


def test_done_says_nothing():
    with pytest.raises(AgentProtocolError):
        answers.done(b"x")
