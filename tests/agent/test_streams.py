"""Output as it is written, terminals, and actions that go on unheard."""

from pathlib import Path

import pytest

from excise.agent import messages, wire
from excise.agent.connection import Connection
from excise.agent.errors import AgentRefused
from excise.agent.messages import Exec
from excise.errors import InputError, LifecycleError
from excise.types import MIB
from tests.agent.conftest import ENV, holding, until
from tests.agent.test_commands import sh


def printed(running, stream=wire.STDOUT):
    return b"".join(output.data for output in running if output.stream == stream)


def peak_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_output_comes_while_the_command_still_runs(box, tmp_path):
    fifo = tmp_path / "go"
    script = f"mkfifo {fifo}; echo first; cat {fifo}; echo last >&2"
    with box.start(sh(script)) as running:
        assert next(running) == (wire.STDOUT, b"first\n")
        until(fifo.is_fifo)
        fifo.write_bytes(b"second\n")
        assert next(running) == (wire.STDOUT, b"second\n")
        assert next(running) == (wire.STDERR, b"last\n")
        result = running.result()
    assert (result.code, result.stdout, result.stdout_total, result.stderr_total) == (0, b"", 13, 5)


def test_a_hundred_megabytes_flow_through_a_small_agent(box, agent):
    size = 100 * MIB
    with box.start(sh(f"head -c {size} /dev/zero")) as running:
        total = 0
        for output in running:
            assert len(output.data) <= wire.CHUNK_LIMIT
            total += len(output.data)
        result = running.result()
    assert (total, result.stdout_total, result.code) == (size, size, 0)
    assert peak_kib(agent.pid) < 32 * 1024


def written_bytes(pid):
    return int(Path(f"/proc/{pid}/io").read_text().split("wchar:")[1].split()[0])


def test_a_command_whose_output_nobody_takes_waits(box):
    with box.start(Exec(("head", "-c", "100000000", "/dev/zero"), env=ENV)) as running:
        (head,) = until(lambda: [p.pid for p in box.processes() if p.action == running.id])
        until(lambda: written_bytes(head) >= wire.CREDIT_BYTES)
        for _ in range(50):
            box.ping()
        assert written_bytes(head) < 2 * wire.CREDIT_BYTES
        assert len(printed(running)) == 100_000_000


def test_leaving_the_block_kills_what_was_started(box, marker):
    with box.start(sh(f"setsid sleep {marker} & echo up; sleep {marker}")) as running:
        assert next(running).data == b"up\n"
    until(lambda: not box.actions())
    assert holding(marker) == []


def test_stdin_is_fed_while_output_is_read(box):
    with box.start(Exec(("cat",), env=ENV, stdin=b"zero "), stdin_open=True) as running:
        assert next(running).data == b"zero "
        for word in (b"one", b"two"):
            running.write(word)
            assert next(running).data == word
        running.end_of_input()
        assert running.result().code == 0


def test_megabytes_of_stdin_are_fed_in_pieces(box):
    data = bytes(range(256)) * 16 * 1024
    with box.start(Exec(("wc", "-c"), env=ENV), stdin_open=True) as running:
        running.write(data)
        running.write(data)
        running.end_of_input()
        assert printed(running) == b"%d\n" % (2 * len(data))


def test_input_that_comes_when_the_action_has_ended_is_dropped_and_does_not_pile_up(agent):
    """The agent keeps such input for an action to come, in a few places; its end gives the place back."""
    for id_ in range(1000, 1100):
        for data in (*messages.stdin_pieces(id_, b"nobody reads this"), messages.stdin_end(id_)):
            agent.sock.sendall(data)
    with Connection(agent.sock) as box:
        data = bytes(5 * MIB)
        assert box.run(Exec(("cat",), env=ENV, stdin=data)).stdout == data


def test_a_streamed_action_is_signalled_alone_or_with_all_it_started(box, marker):
    script = f"trap 'echo caught' USR1; sleep {marker} & echo up; wait; wait"
    with box.start(sh(script)) as running:
        assert next(running).data == b"up\n"
        running.signal(10, whole_tree=False)
        assert next(running).data == b"caught\n"
        until(lambda: holding(marker))
        running.signal(15)
        assert running.result().code in {0, 143}
    until(lambda: not holding(marker))


def test_a_streamed_action_times_out(box, marker):
    with box.start(sh(f"echo up; sleep {marker}", timeout_s=1.5)) as running:
        assert printed(running) == b"up\n"
        result = running.result()
    assert (result.end, result.code) == (wire.END_TIMEOUT, 137)


def test_a_command_that_is_missing_is_a_result_of_a_stream_too(box):
    with box.start(Exec(("no-such-program",), env=ENV)) as running:
        assert running.result().code == 127


def test_a_terminal_is_one_and_has_a_size(box):
    what = sh("tty; stty size; [ -t 0 -a -t 1 -a -t 2 ] && echo all; echo err >&2",
              pty=True, rows=33, columns=99)  # fmt: skip
    with box.start(what) as running:
        lines = printed(running).decode().split()
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:] == ["33", "99", "all", "err"]
    with pytest.raises(InputError, match="start it"):
        box.run(what)


def test_a_terminal_changes_its_size_under_the_program(box):
    script = "trap 'stty size; exit 7' WINCH; echo up; while :; do sleep 0.05; done"
    with box.start(sh(script, pty=True)) as running:
        assert next(running).data == b"up\r\n"
        running.resize(40, 132)
        assert printed(running) == b"40 132\r\n"
        assert running.result().code == 7


def test_what_is_typed_is_echoed_and_control_d_ends_it(box):
    with box.start(Exec(("cat",), env=ENV, pty=True), stdin_open=True) as running:
        running.write(b"typed\n")
        running.end_of_input()
        assert printed(running).replace(b"^D\x08\x08", b"") == b"typed\r\ntyped\r\n"
        assert running.result().code == 0


def test_control_c_interrupts_what_runs_on_a_terminal(box, marker):
    with box.start(sh(f"echo up; sleep {marker}", pty=True), stdin_open=True) as running:
        assert next(running).data == b"up\r\n"
        running.write(b"\x03")
        assert running.result().code == 130


def test_a_background_action_is_listed_attached_to_and_signalled(box, marker):
    action = box.background(sh(f"echo one; sleep {marker}"))
    (found,) = box.actions()
    assert (found.id, found.ended, found.words) == (action, False, "bash -c")
    with box.attach(action) as running:
        assert next(running) == (wire.STDOUT, b"one\n")
        box.signal(action, 15)
        result = running.result()
    assert (result.code, result.end, result.stdout_total) == (143, wire.END_SIGNAL, 4)
    assert box.actions() == []


def test_a_background_action_that_has_ended_keeps_its_end_and_head_and_tail(box):
    action = box.background(sh("printf abcdefgh; echo err >&2; exit 3", output_limit=4))
    until(lambda: box.actions()[0].ended)
    with box.attach(action) as running:
        outputs = list(running)
        result = running.result()
    assert outputs == [(wire.STDOUT, b"abgh"), (wire.STDERR, b"err\n")]
    assert (result.code, result.stdout_total, result.stderr_total) == (3, 8, 4)
    with pytest.raises(AgentRefused, match="ESRCH"):
        box.attach(action).result()


def test_what_is_detached_goes_on_and_can_be_attached_again(box, tmp_path):
    fifo = tmp_path / "go"
    running = box.start(sh(f"mkfifo {fifo}; echo one; cat {fifo}; echo three"))
    assert next(running).data == b"one\n"
    running.detach()
    assert list(running) == []
    with pytest.raises(LifecycleError, match="attach"):
        running.result()
    fifo.write_bytes(b"two\n")
    until(lambda: box.actions()[0].ended)
    with box.attach(running.id) as again:
        assert printed(again) == b"two\nthree\n"
        assert again.result().code == 0


def test_leaving_what_was_attached_lets_it_live(box, marker):
    action = box.background(sh(f"echo up; sleep {marker}"))
    with box.attach(action) as running:
        assert next(running).data == b"up\n"
    assert [a.ended for a in box.actions()] == [False]
    box.signal(action, 9)
    until(lambda: box.actions()[0].ended)


def test_an_attached_action_may_print_more_than_a_megabyte_that_was_kept_before(box):
    action = box.background(sh("head -c 5000000 /dev/zero"))
    until(lambda: box.actions()[0].ended)
    with box.attach(action) as running:
        assert len(printed(running)) == 5_000_000


def test_what_was_kept_counts_as_output_under_way_once_somebody_listens(box, tmp_path):
    fifo = tmp_path / "go"
    script = (
        f"mkfifo {fifo}; head -c 5000000 /dev/zero; cat {fifo}; exec head -c 50000000 /dev/zero"
    )
    action = box.background(sh(script))
    (pid,) = [a.pid for a in box.actions()]
    until(fifo.is_fifo)
    with box.attach(action) as running:
        taken = 0
        while taken < 5_000_000:
            taken += len(next(running).data)
        fifo.write_bytes(b"")
        until(lambda: written_bytes(pid) >= taken + wire.CREDIT_BYTES // 2)
        for _ in range(50):
            box.ping()
        assert written_bytes(pid) < taken + 2 * wire.CREDIT_BYTES
        assert len(printed(running)) == 50_000_000


def test_an_action_has_one_listener_at_a_time(box, marker):
    action = box.background(sh(f"sleep {marker}"))
    with box.attach(action):
        with pytest.raises(LifecycleError, match="attached already"):
            box.attach(action)
        box.signal(action, 9)


def test_quiet_kills_everything_and_answers_everybody(box, marker):
    running = box.start(sh(f"sleep {marker}"))
    action = box.background(sh(f"setsid sleep {marker} & sleep {marker}"))
    until(lambda: len(holding(marker)) >= 3)
    box.quiet()
    assert holding(marker) == []
    assert running.result().code == 137
    assert [(a.id, a.ended) for a in box.actions()] == [(action, True)]
    assert box.run(sh("echo on")).stdout == b"on\n"
