"""Commands and terminals of the E2B door, through the unmodified SDK."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from e2b import (
    AsyncSandbox,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    Sandbox,
    TimeoutException,
)

from excise.jail.substrate import Jail


def test_a_command_tells_its_output_and_its_exit_code(e2b_client):
    def script(client):
        box = Sandbox.create(envs={"FOO": "bar"}, **client.alice)
        found = box.commands.run("echo out; echo err >&2; echo $FOO $MORE", envs={"MORE": "x"})
        assert (found.stdout, found.stderr, found.exit_code) == ("out\nbar x\n", "err\n", 0)
        pieces = []
        box.commands.run("printf 'käse\\n'", on_stdout=pieces.append)
        assert "".join(pieces) == "käse\n"
        assert box.commands.run("printf '\\xe2'").stdout == "\ufffd"
        with pytest.raises(CommandExitException) as failed:
            box.commands.run("echo so; exit 3")
        assert (failed.value.exit_code, failed.value.stdout) == (3, "so\n")
        for signal in (9, 15):
            with pytest.raises(CommandExitException) as killed:
                box.commands.run(f"kill -{signal} $$")
            assert killed.value.exit_code == 128 + signal
        with pytest.raises(CommandExitException) as missing:
            box.commands.run("no-such-program")
        assert missing.value.exit_code == 127

    e2b_client(script)


def test_a_command_runs_as_whom_and_where_it_is_told(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        who = "id -un; pwd; echo $HOME $USER"
        assert box.commands.run(who).stdout == "user\n/home/user\n/home/user user\n"
        assert box.commands.run(who, user="root").stdout == "root\n/root\n/root root\n"
        assert box.commands.run("pwd", cwd="/usr").stdout == "/usr\n"
        box.files.make_dir("below")
        assert box.commands.run("pwd", cwd="below").stdout == "/home/user/below\n"
        assert box.commands.run("pwd", cwd="~/below").stdout == "/home/user/below\n"
        with pytest.raises(CommandExitException):
            box.commands.run("touch /etc/mine")
        with pytest.raises(InvalidArgumentException, match="does not exist"):
            box.commands.run("pwd", cwd="/nowhere")
        with pytest.raises(Exception, match="no user"):
            box.commands.run("true", user="nobody-of-that-name")

    e2b_client(script)


def test_commands_longer_than_an_argument_run_as_anybody_and_leave_nothing(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        long = "echo '" + "x" * 200_000 + "' | wc -c"
        for user in ("user", "root"):
            assert box.commands.run(long, user=user).stdout.strip() == "200001"
        assert box.commands.run("ls -A /tmp").stdout == ""

    e2b_client(script)


def test_a_time_limit_ends_the_command_in_the_sdks_own_words(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        with pytest.raises(TimeoutException):
            box.commands.run("sleep 300", timeout=0.5)
        handle = box.commands.run("sleep 300", timeout=2.5, background=True)
        with pytest.raises(TimeoutException):
            handle.wait()
        assert box.commands.run("pgrep -x sleep || echo none").stdout == "none\n"
        assert box.commands.run("sleep 0.2; echo on", timeout=0).stdout == "on\n"

    e2b_client(script)


def test_background_commands_are_listed_heard_fed_and_killed(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        cat = box.commands.run("cat; echo end", background=True, stdin=True)
        (listed,) = box.commands.list()
        assert (listed.pid, listed.cmd, listed.args) == (
            cat.pid,
            "/bin/bash",
            ["-l", "-c", "cat; echo end"],
        )
        box.commands.send_stdin(cat.pid, "one\n")
        box.commands.stream_input(cat.pid, ["two\n", b"three\n"])
        box.commands.close_stdin(cat.pid)
        assert cat.wait().stdout == "one\ntwo\nthree\nend\n"
        assert box.commands.list() == []
        with pytest.raises(NotFoundException):
            box.commands.send_stdin(cat.pid, "late")
        sleep = box.commands.run("sleep 300", background=True)
        again = box.commands.connect(sleep.pid)
        assert box.commands.kill(sleep.pid) is True
        for each in (sleep, again):
            with pytest.raises(CommandExitException) as killed:
                each.wait()
            assert killed.value.exit_code == 137
        assert box.commands.kill(sleep.pid) is False
        with pytest.raises(NotFoundException):
            box.commands.connect(4711)
        silent = box.commands.run("cat", stdin=False)
        assert silent.stdout == ""

    e2b_client(script)


def test_output_comes_while_the_command_runs(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.commands.run("mkfifo go")
        handle = box.commands.run("echo ready; read line < go; echo $line", background=True)
        seen = []
        for out, _, _ in handle:
            seen.append(out)
            if len(seen) == 1:
                box.commands.run("echo gone > go")
        assert "".join(seen) == "ready\ngone\n"

    e2b_client(script)


def test_a_command_that_is_slow_to_start_and_says_nothing_is_told_of_all_the_same(
    e2b_client, jail, tmp_path
):
    class Slow(Jail):
        async def stream(self, *args, **more):
            await asyncio.sleep(0.05)
            return await super().stream(*args, **more)

    def script(client):
        box = Sandbox.create(**client.alice)
        handle = box.commands.run("sleep 300", background=True, request_timeout=10)
        assert handle.kill() is True

    e2b_client(script, Slow(leases=tmp_path / "leases"))


def test_a_dropped_connection_leaves_the_command_alive(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        box.commands.run("mkfifo go")
        told = "echo begun; read line < go; echo done > file; echo end"
        handle = box.commands.run(told, background=True)
        for _ in handle:
            break
        handle.disconnect()
        assert [each.pid for each in box.commands.list()] == [handle.pid]
        again = box.commands.connect(handle.pid)
        box.commands.run("echo > go")
        assert again.wait().stdout == "end\n"
        assert box.files.read("file") == "done\n"
        assert box.commands.connect(handle.pid).wait().stdout == "begun\nend\n", "all that is kept"

    e2b_client(script)


def test_much_output_is_whole_and_waits_for_its_reader(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        found = box.commands.run("seq 1 400000; seq 1 1000 >&2")
        assert len(found.stdout) == sum(len(str(n)) + 1 for n in range(1, 400_001))
        assert found.stdout.endswith("399999\n400000\n")
        assert found.stderr.count("\n") == 1000

    e2b_client(script)


def test_a_terminal_is_typed_at_resized_connected_to_and_killed(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        terminal = box.pty.create(PtySize(rows=20, cols=60))
        box.pty.send_stdin(terminal.pid, b"stty size\n")
        said = bytearray()
        for _, _, data in terminal:
            said += data
            if b"20 60" in said:
                break
        box.pty.resize(terminal.pid, PtySize(rows=31, cols=77))
        again = box.pty.connect(terminal.pid)
        box.pty.stream_input(terminal.pid, ["stty size; echo $TERM; exit\n"])
        more = bytearray()
        again.wait(on_pty=more.extend)
        assert b"31 77" in more
        assert b"xterm-256color" in more
        second = box.pty.create(PtySize(rows=20, cols=60))
        assert second.kill() is True
        assert box.pty.kill(second.pid) is False

    e2b_client(script)


def test_what_runs_is_gone_with_its_sandbox_and_clients_are_told(e2b_client):
    def script(client):
        box = Sandbox.create(**client.alice)
        handle = box.commands.run("sleep 300", background=True)
        assert box.is_running()
        assert box.kill() is True
        with pytest.raises(Exception):  # noqa: B017  # SDKs differ in which
            handle.wait()
        assert not box.is_running()
        with pytest.raises(TimeoutException, match="was not found"):
            box.commands.run("true")
        with pytest.raises(TimeoutException, match="was not found"):
            box.files.read("x")

    e2b_client(script)


def test_many_at_once_through_the_async_sdk(e2b_client):
    async def work(options):
        box = await AsyncSandbox.create(**options)
        found = await asyncio.gather(*(box.commands.run(f"echo {n}") for n in range(40)))
        assert [each.stdout for each in found] == [f"{n}\n" for n in range(40)]
        handle = await box.commands.run("cat", background=True, stdin=True)
        await handle.send_stdin("x\n")
        await handle.close_stdin()
        assert (await handle.wait()).stdout == "x\n"
        said = bytearray()
        terminal = await box.pty.create(PtySize(rows=9, cols=9), on_data=said.extend)
        await box.pty.send_stdin(terminal.pid, b"exit\n")
        await terminal.wait()
        assert b"exit" in said
        assert await box.kill()

    e2b_client(lambda client: asyncio.run(work(client.alice)))


def test_a_reader_that_went_away_holds_nothing_up(e2b_client):
    """A raw client that never reads: its connection closes, and the command ends all the same."""

    def script(client):
        box = Sandbox.create(**client.alice)
        handle = box.commands.run("yes | head -c 30000000; echo done > file", background=True)
        host, port = client.served.url.removeprefix("http://").split(":")
        body = b'{"process":{"pid":%d}}' % handle.pid
        envelope = b"\0" + len(body).to_bytes(4, "big") + body
        with socket.create_connection((host, int(port))) as deaf:
            deaf.sendall(
                b"POST /process.Process/Connect HTTP/1.1\r\nHost: x\r\n"
                b"Content-Type: application/connect+json\r\n"
                + f"E2b-Sandbox-Id: {box.sandbox_id}\r\n".encode()
                + f"X-Access-Token: {box._envd_access_token}\r\n".encode()
                + b"Content-Length: %d\r\n\r\n" % len(envelope)
                + envelope
            )
        handle.disconnect()
        deadline = time.monotonic() + 20
        while not box.files.exists("file"):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    e2b_client(script)
