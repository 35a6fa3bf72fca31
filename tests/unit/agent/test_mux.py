"""Every answer reaches whoever asked, whatever the order, and nobody else."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.agent import answers, procedures, wire
from excise.agent.errors import AgentError, AgentGone, AgentProtocolError, AgentRefused
from excise.agent.hold import Hold
from excise.agent.messages import Exec
from excise.agent.mux import Mux, Output, Stream
from excise.errors import LifecycleError
from tests.unit.agent import words


def result_for(mux):
    return mux.open(mux.new_id(), wire.OP_RESULT, answers.result, None)


def stream_on(mux):
    id_ = mux.new_id()
    return mux.claim(Stream(id_, None, kills=id_))


@given(st.permutations(range(6)), st.integers(1, 40))
def test_answers_in_any_order_reach_those_who_asked(order, cut):
    mux = Mux()
    asked = [result_for(mux) for _ in order]
    data = b"".join(words.result(asked[n].id, code=n) for n in order)
    for at in range(0, len(data), cut):
        mux.feed(data[at : at + cut])
    assert [x.value().code for x in asked] == list(range(6))
    assert not mux.under_way()
    assert mux.strays == 0


def test_ids_are_never_zero_nor_those_of_somebody_elses_actions():
    mux = Mux()
    mux.reserve([1, 3])
    assert [mux.new_id() for _ in range(3)] == [2, 4, 5]


def test_a_refusal_is_raised_where_the_answer_is_asked_for():
    mux = Mux()
    exchange = result_for(mux)
    mux.feed(words.error(exchange.id, 12, "no room"))
    with pytest.raises(AgentRefused, match=r"no room \(ENOMEM\)") as caught:
        exchange.value()
    assert caught.value.number == 12
    assert not mux.failed


def test_what_is_asked_about_a_running_action_is_answered_beside_it():
    mux = Mux()
    action = result_for(mux)
    first, second = mux.aside(action.id, None), mux.aside(action.id, None)
    mux.feed(words.frame(wire.OP_DONE, action.id))
    assert (first.done, second.done, action.done) == (True, False, False)
    mux.feed(words.result(action.id) + words.error(action.id, 3))
    assert action.value().code == 0
    with pytest.raises(AgentRefused, match="ESRCH"):
        second.value()


def test_the_start_of_a_background_action_is_answered_before_what_is_asked_about_it():
    mux = Mux()
    start = mux.open(mux.new_id(), wire.OP_DONE, answers.done, None)
    aside = mux.aside(start.id, None)
    mux.feed(words.frame(wire.OP_DONE, start.id))
    assert (start.done, aside.done) == (True, False)
    mux.feed(words.frame(wire.OP_DONE, start.id))
    assert aside.done


def test_what_is_abandoned_is_killed_and_its_late_answers_are_dropped():
    mux = Mux()
    stream, other = stream_on(mux), result_for(mux)
    sent = mux.abandon(stream)
    assert sent.startswith(words.frame(wire.OP_SIGNAL, stream.id, b"\x09\0\0\0\1\0\0\0"))
    mux.feed(words.frame(wire.OP_OUTPUT, stream.id, b"late", flags=1))
    mux.feed(words.frame(wire.OP_DONE, stream.id) + words.result(stream.id))
    mux.feed(words.result(other.id, code=5))
    assert other.value().code == 5
    assert mux.strays == 2
    with pytest.raises(AgentError):
        stream.value()
    assert not mux.under_way()


def test_abandoning_twice_or_after_the_answer_sends_nothing():
    mux = Mux()
    stream = stream_on(mux)
    assert mux.abandon(stream)
    assert mux.abandon(stream) == b""
    answered = result_for(mux)
    mux.feed(words.result(answered.id))
    assert mux.abandon(answered) == b""
    assert answered.value().code == 0


def test_what_is_not_the_protocol_fails_everybody_now_and_later():
    mux = Mux()
    waiting, aside = result_for(mux), mux.aside(99, None)
    mux.feed(b"HTTP/1.1 400 Bad Request\r\n")
    for exchange in (waiting, aside):
        with pytest.raises(AgentProtocolError):
            exchange.value()
    with pytest.raises(AgentProtocolError):
        result_for(mux)


def test_an_answer_of_the_wrong_kind_is_not_the_protocol():
    mux = Mux()
    exchange = result_for(mux)
    mux.feed(words.frame(wire.OP_PONG, exchange.id, bytes(8)))
    with pytest.raises(AgentProtocolError, match="op 66 where 64"):
        exchange.value()


def test_the_first_failure_is_the_one_that_is_told():
    mux = Mux()
    mux.fail(AgentGone, "first")
    mux.fail(AgentProtocolError, "second")
    with pytest.raises(AgentGone, match="first"):
        mux.check()


def test_an_action_has_one_listener():
    mux = Mux()
    stream = stream_on(mux)
    with pytest.raises(LifecycleError):
        mux.claim(Stream(stream.id, None, kills=0))


chunks = st.lists(
    st.tuples(st.sampled_from([wire.STDOUT, wire.STDERR]), st.integers(1, wire.CHUNK_LIMIT)),
    max_size=30,
)


@given(chunks, st.data())
def test_an_agent_that_minds_its_credit_is_never_stuck_and_never_more_than_a_megabyte_ahead(
    planned, data
):
    """The agent sends what it has credit for; the client takes and grants: all of it arrives, in order."""
    mux = Mux()
    stream = stream_on(mux)
    credit, sent, got = wire.CREDIT_BYTES, [], []
    ahead = 0
    todo = list(planned)
    while todo or ahead:
        can_send = bool(todo) and todo[0][1] <= credit
        assert can_send or ahead, "nothing to take and no credit: stuck"
        if can_send and (not ahead or data.draw(st.booleans())):
            which, size = todo.pop(0)
            sent.append(Output(which, bytes([len(sent)]) * size))
            mux.feed(words.frame(wire.OP_OUTPUT, stream.id, sent[-1].data, flags=which))
            credit -= size
            ahead += size
        else:
            output, reply = stream.take()
            got.append(output)
            ahead -= len(output.data)
            if reply:
                credit += words.Reader(reply[12:]).numbers("I")[0]
        assert ahead <= wire.CREDIT_BYTES
        assert credit + ahead <= wire.CREDIT_BYTES
    assert got == sent
    assert stream.take() is None


def test_output_on_a_stream_that_is_neither_is_not_the_protocol():
    mux = Mux()
    stream = stream_on(mux)
    mux.feed(words.frame(wire.OP_OUTPUT, stream.id, b"x", flags=3))
    with pytest.raises(AgentProtocolError, match="stream 3"):
        stream.value()


def test_a_hold_gives_what_was_printed_before_it_tells_that_the_agent_is_gone():
    mux = Mux()
    stream = stream_on(mux)
    hold = Hold(mux, stream, pty=False)
    mux.feed(words.frame(wire.OP_OUTPUT, stream.id, b"last words", flags=1))
    mux.fail(AgentGone, "gone")
    assert hold.take()[0] == Output(wire.STDOUT, b"last words")
    with pytest.raises(AgentGone):
        hold.take()


def test_input_that_may_have_come_too_late_is_taken_back_at_the_end():
    mux = Mux()
    stream = stream_on(mux)
    hold = Hold(mux, stream, pty=False)
    assert len(list(hold.typed(b"late"))) == 1
    mux.feed(words.result(stream.id))
    assert hold.take() == (None, words.frame(wire.OP_STDIN_END, stream.id))
    assert hold.take() == (None, b"")
    assert list(hold.typed(b"later")) == []


def test_what_was_attached_to_is_let_go_and_not_killed():
    mux = Mux()
    stream = mux.claim(Stream(9, None, kills=0))
    assert Hold(mux, stream, pty=False).let_go() == words.frame(wire.OP_DETACH, 9, b"\x09\0\0\0")
    mux.feed(words.frame(wire.OP_DONE, 9))
    assert (mux.strays, mux.under_way()) == (0, [])


def test_a_detached_action_has_no_result_here():
    mux = Mux()
    hold = Hold(mux, stream_on(mux), pty=False)
    hold.detached = True
    with pytest.raises(LifecycleError, match="attach to it"):
        hold.result()


def test_a_request_that_cannot_be_made_leaves_nothing_behind():
    mux = Mux()
    for procedure in (
        procedures.run(mux, Exec(("a\0b",))),
        procedures.start(mux, Exec(("a\0b",)), stdin_open=True),
        procedures.run_in_shell(mux, 1, "a\0b", None, 5),
        procedures.quiet(mux, -1),
    ):
        with pytest.raises(Exception, match=r"zero byte|time limit"):
            next(procedure)
    assert not mux.under_way()


def test_another_version_is_named():
    mux = Mux()
    procedure = procedures.hello(mux)
    next(procedure)
    body = b"\x02\0\0\0" + bytes(8) + words.string("")
    mux.feed(words.frame(wire.OP_HELLO, 1, body))
    with pytest.raises(AgentProtocolError, match="version 2 of the protocol, we speak 1"):
        next(procedure)


said = st.tuples(
    st.sampled_from(sorted(wire.ANSWERS)), st.integers(0, 6), st.binary(max_size=100),
    st.integers(0, 3),
)  # fmt: skip


@given(st.lists(said, max_size=12), st.integers(1, 50))
def test_whatever_an_agent_says_nobody_is_answered_twice_and_nothing_else_is_raised(frames, cut):
    mux = Mux()
    woken = []
    exchanges = [result_for(mux), stream_on(mux), mux.open(3, wire.OP_DONE, answers.done, None)]
    exchanges += [mux.aside(1, None), mux.aside(2, None)]
    for n, exchange in enumerate(exchanges):
        exchange.wake = lambda n=n: woken.append((n, exchanges[n].done))
    data = b"".join(words.frame(op, id_, body, flags) for op, id_, body, flags in frames)
    for at in range(0, len(data), cut):
        mux.feed(data[at : at + cut])
    ends = [n for n, done in woken if done]
    assert len(ends) == len(set(ends))
    assert sorted(ends) == [n for n, exchange in enumerate(exchanges) if exchange.done]
    if mux.failed:
        assert all(exchange.done for exchange in exchanges)
    for exchange in exchanges:
        if exchange.done:
            with contextlib.suppress(AgentError):
                exchange.value()
