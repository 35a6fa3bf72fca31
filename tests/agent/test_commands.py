"""Commands through the real agent: what they get, and what comes back of them."""

import errno
import os
import re
import resource
import time
from pathlib import Path

import pytest

from excise.agent import wire
from excise.agent.errors import AgentRefused
from excise.agent.messages import Exec, pack_env
from excise.agent.observation import observation_of
from excise.errors import InputError
from excise.types import MIB, Fault
from tests.agent.conftest import ENV, holding, until


def sh(script, **how):
    return Exec(("bash", "-c", script), **{"env": ENV, **how})


def test_the_agent_says_who_it_is(box, agent):
    found = box.hello()
    assert (found.version, found.pid) == (1, agent.pid)
    assert {"exec", "stream", "pty", "background", "shell", "files"} <= found.features


def test_a_placed_agent_knows_what_it_was_started_with(box):
    found = box.environment()
    assert {name: found[name] for name in ("PATH", "HOME")} == {
        name: os.environ[name] for name in ("PATH", "HOME")
    }


def test_a_placed_agent_sets_no_clock_that_is_not_its_sandbox_s(box):
    before = time.time()
    with pytest.raises(AgentRefused) as refused:
        box.thaw(0, bytes(64))
    assert refused.value.number == errno.EPERM
    assert time.time() >= before


def test_the_example_of_the_documentation_runs(program, capsys):
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.splitlines()[0] == "b'hi\\n'"


def test_the_agents_clock_goes_forward(box):
    assert box.ping() <= box.ping() <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@pytest.mark.parametrize("code", [0, 1, 7, 124, 255])
def test_exit_codes_come_back_as_they_were(box, code):
    found = box.run(sh(f"exit {code}"))
    assert (found.code, found.end) == (code, wire.END_EXIT)


@pytest.mark.parametrize("number", [9, 11, 15])
def test_a_command_that_dies_of_a_signal_ends_with_128_more(box, number):
    found = box.run(sh(f"kill -{number} $$"))
    assert (found.code, found.end) == (128 + number, wire.END_SIGNAL)


def test_the_streams_are_apart_unless_they_are_merged(box):
    script = "echo 1; echo 2 >&2; echo 3"
    apart = box.run(sh(script))
    assert (apart.stdout, apart.stderr) == (b"1\n3\n", b"2\n")
    merged = box.run(sh(script, merge=True))
    assert (merged.stdout, merged.stderr, merged.stderr_total) == (b"1\n2\n3\n", b"", 0)


def test_arguments_are_exact(box):
    words = ("a b", "", "$HOME", "*", "'\"", "\\n", "käse", "-n", "\udcff")
    found = box.run(Exec(("printf", "%s|", *words), env=ENV))
    assert found.stdout == "".join(f"{w}|" for w in words).encode("utf-8", "surrogateescape")


def test_the_stamps_are_in_order_and_time_is_accounted_for(box):
    found = box.run(sh("for i in {1..20000}; do :; done"))
    assert 0 < found.received_ns <= found.spawned_ns < found.exited_ns <= found.sent_ns
    assert found.user_ns + found.system_ns > 0
    assert found.max_rss_kib > 500


def test_a_program_that_is_missing_is_127(box):
    for name in ("no-such-program", "/no/such/program"):
        found = observation_of(box.run(Exec((name,), env=ENV)))
        assert (found.exit_code, found.fault) == (127, Fault.MISSING_PROGRAM)


def test_a_file_that_is_not_executable_is_126(box, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    found = observation_of(box.run(Exec((str(plain),), env=ENV)))
    assert (found.exit_code, found.fault) == (126, Fault.NOT_EXECUTABLE)


def test_a_directory_that_is_missing_is_126_and_not_a_missing_program(box, tmp_path):
    (tmp_path / "file").touch()
    for cwd in ("/no/such/directory", str(tmp_path / "file")):
        found = observation_of(box.run(Exec(("true",), cwd=cwd, env=ENV)))
        assert (found.exit_code, found.fault) == (126, Fault.MISSING_CWD)


def test_a_command_runs_where_it_is_told_to(box, tmp_path):
    assert box.run(sh("pwd -P", cwd=str(tmp_path))).stdout.decode() == f"{tmp_path.resolve()}\n"
    assert box.run(sh("pwd -P")).stdout == b"/\n"


def test_the_environment_is_what_was_given_and_a_home(box):
    env = pack_env({"PATH": "/usr/bin:/bin", "ODD": "a b'\"$x\nü"})
    found = box.run(Exec(("env", "-0"), env=env))
    lines = set(found.stdout.decode().rstrip("\0").split("\0"))
    assert lines == {"PATH=/usr/bin:/bin", "ODD=a b'\"$x\nü", "HOME=/root"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("user", "says"),
    [("nobody", "65534 65534"), ("1234:5678", "1234 5678"), ("1234", "1234"), ("root", "0 0")],
)
def test_a_command_runs_as_whom_it_is_told_to(box, user, says):
    found = box.run(sh("echo $(id -u) $(id -g)", user=user))
    assert found.stdout.decode().startswith(says)


def test_a_user_that_is_not_there_is_bad_input(box):
    result = box.run(sh("true", user="no-such-user"))
    with pytest.raises(InputError, match="no-such-user"):
        observation_of(result, user="no-such-user")


def test_limits_and_umask_hold(box, tmp_path):
    limits = ((resource.RLIMIT_NOFILE, 77, 88), (resource.RLIMIT_CORE, 0, -1))
    found = box.run(sh("ulimit -n; ulimit -Hn; umask", limits=limits, umask=0o027))
    assert found.stdout == b"77\n88\n0027\n"


def test_stdin_arrives_and_ends(box):
    assert box.run(sh("cat", stdin=b"a\0b\xff\n")).stdout == b"a\0b\xff\n"
    assert box.run(sh("cat; [ -t 0 ] || echo end")).stdout == b"end\n"


@pytest.mark.parametrize("size", [5 * MIB, 4 * MIB, 4 * MIB + 1])
def test_megabytes_of_stdin_arrive_echoed_or_are_ignored(box, size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert box.run(Exec(("cat",), env=ENV, stdin=data)).stdout == data
    assert box.run(Exec(("true",), env=ENV, stdin=data)).code == 0
    assert box.run(Exec(("wc", "-c"), env=ENV, stdin=data)).stdout == b"%d\n" % size


def test_output_over_the_limit_keeps_head_and_tail_and_every_byte_is_counted(box):
    script = "for c in a b c d; do head -c 50000 /dev/zero | tr '\\0' $c; done; echo -n err >&2"
    found = box.run(sh(script, output_limit=1001))
    assert found.stdout == b"a" * 501 + b"d" * 500
    assert (found.stdout_total, found.stderr_total, found.stderr) == (200_000, 3, b"err")
    exact = observation_of(box.run(sh("printf 12345678", output_limit=8)))
    assert (exact.stdout, exact.truncated) == (b"12345678", False)
    none = observation_of(box.run(sh("printf 12345678", output_limit=0)))
    assert (none.stdout, none.truncated, none.stdout_bytes) == (b"", True, 8)


def test_ten_megabytes_on_both_streams_at_once(box):
    script = "head -c 10485760 /dev/zero | tr '\\0' e >&2 & head -c 10485760 /dev/zero | tr '\\0' o; wait"
    found = box.run(sh(script))
    assert found.stdout == b"o" * 10 * MIB
    assert found.stderr == b"e" * 10 * MIB


def test_a_time_out_kills_the_whole_tree_and_keeps_what_was_printed(box, marker):
    script = (
        f"echo before; setsid bash -c 'sleep {marker} & exec sleep {marker}' & "
        f"(setsid -f sleep {marker}); trap '' TERM; sleep {marker}"
    )
    found = box.run(sh(script, timeout_s=1.5))
    assert (found.end, found.code, found.stdout) == (wire.END_TIMEOUT, 137, b"before\n")
    assert holding(marker) == []


def test_a_background_child_holds_nothing_up(box, marker):
    found = box.run(sh(f"sleep {marker} & echo started"))
    assert (found.code, found.stdout) == (0, b"started\n")
    until(lambda: len(holding(marker)) == 1)
    box.quiet()
    assert holding(marker) == []


def test_a_shell_spawned_ahead_does_what_a_fresh_one_does(box, tmp_path):
    for _ in range(4):
        script = "cd /tmp; X=1; echo $X $0 $#; echo err >&2; cat; exit 5"
        ahead = box.run(sh(script, one_shot=True, stdin=b"in", cwd=str(tmp_path)))
        fresh = box.run(sh(script, stdin=b"in", cwd=str(tmp_path)))
        assert ahead[:1] + ahead[-2:] == fresh[:1] + fresh[-2:]
        assert box.run(sh("echo [$X]; pwd", one_shot=True)).stdout == b"[]\n/\n"


def test_processes_are_told_with_the_action_they_belong_to(box, marker):
    action = box.background(sh(f"sleep {marker} & wait"))
    (pid,) = until(lambda: holding(marker))
    (sleeper,) = [p for p in box.processes() if p.pid == pid]
    assert (sleeper.action, sleeper.name) == (action, "sleep")
    box.signal(action, 9)
    with box.attach(action) as running:
        assert running.result().code == 137


def test_a_request_the_agent_does_not_know_is_refused_and_nothing_else_happens(agent):
    from tests.unit.agent import words

    agent.sock.sendall(words.frame(31, 5) + words.frame(wire.OP_PING, 6))
    told = b""
    while len(told) < 12 or wire.OP_PONG not in told[12:]:
        told += agent.sock.recv(4096)
    assert (told[4], told[8]) == (wire.OP_ERROR, 5)


def test_a_malformed_request_is_refused_and_the_connection_goes_on(box):
    action = box.background(sh("sleep 1000"))
    with pytest.raises(AgentRefused, match="ESRCH"):
        box.signal(action + 100, 9)
    box.signal(action, 0)
    assert box.run(sh("echo on")).stdout == b"on\n"
