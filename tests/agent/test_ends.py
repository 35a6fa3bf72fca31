"""How it ends: cancelled, interrupted, hung, killed, forked; and many at once while it lasts."""

import asyncio
import os
import signal
import threading

import pytest

from excise.agent import procedures
from excise.agent.async_connection import AsyncConnection
from excise.agent.connection import Connection
from excise.agent.errors import AgentGone, AgentTimeout
from excise.agent.messages import PIECE_BYTES, Exec
from excise.types import MIB
from tests.agent.conftest import ENV, Agent, holding, until
from tests.agent.test_commands import sh


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupt():
    """Interrupt this thread as Control-C would, as soon as `ready` says so."""

    def handle(*_):
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    threads = []

    def arrange(ready):
        def watch():
            until(ready)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

        threads.append(threading.Thread(target=watch))
        threads[-1].start()

    yield arrange
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGUSR1, before)


def test_an_interrupted_call_kills_its_whole_tree_and_the_connection_goes_on(
    agent, marker, interrupt
):
    with Connection(agent.sock) as box:
        interrupt(lambda: len(holding(marker)) == 2)
        with pytest.raises(Interrupted):
            box.run(sh(f"setsid sleep {marker} & sleep {marker}"))
        until(lambda: not holding(marker))
        assert box.run(sh("echo on")).stdout == b"on\n"


def test_a_cancelled_call_kills_its_whole_tree_and_the_connection_goes_on(agent, marker):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            task = asyncio.create_task(box.run(sh(f"setsid sleep {marker} & sleep {marker}")))
            await asyncio.to_thread(until, lambda: len(holding(marker)) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: not holding(marker))
            assert (await box.run(sh("echo on"))).stdout == b"on\n"
            assert await box.actions() == []

    asyncio.run(body())


def test_a_cancelled_script_takes_its_shell_with_it(agent, marker):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            shell = await box.open_shell(env=ENV)
            task = asyncio.create_task(shell.run(f"sleep {marker}"))
            await asyncio.to_thread(until, lambda: holding(marker))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: not holding(marker))
            async with await box.open_shell(env=ENV) as another:
                assert (await another.run("echo on")).stdout == b"on\n"

    asyncio.run(body())


def test_a_cancelled_file_of_many_pieces_leaves_nothing(agent, tmp_path):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            with agent.stopped():
                task = asyncio.create_task(box.write(str(tmp_path / "file"), bytes(20 * MIB)))
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await box.ping()
            assert list(tmp_path.iterdir()) == []
            await box.write(str(tmp_path / "file"), b"whole")
            assert [p.name for p in tmp_path.iterdir()] == ["file"]

    asyncio.run(body())


def test_a_connection_to_an_agent_that_hangs_can_be_closed(agent, tmp_path):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            task = asyncio.create_task(box.write(str(tmp_path / "file"), bytes(20 * MIB)))
            await asyncio.sleep(0.05)
        with pytest.raises(AgentGone):
            await task

    with agent.stopped():
        asyncio.run(body())


def test_a_local_file_that_cannot_be_read_to_its_end_leaves_nothing_inside(agent, tmp_path):
    def pieces():
        yield bytes(PIECE_BYTES)
        yield bytes(PIECE_BYTES)
        raise OSError("the disk is gone")

    from functools import partial

    from excise.agent import files, messages

    with Connection(agent.sock) as box:
        owner = partial(messages.write, mode=0o644)
        procedure = files.write_pieces(box._mux, str(tmp_path / "file"), owner, pieces())
        with pytest.raises(OSError, match="the disk is gone"):
            box._channel.do(procedure)
        box.ping()
        assert list(tmp_path.iterdir()) == []


def test_an_agent_that_hangs_is_told_from_a_command_that_does(box, agent, monkeypatch):
    monkeypatch.setattr(procedures, "GRACE_S", 0.3)
    with agent.stopped(), pytest.raises(AgentTimeout, match="kill the sandbox"):
        box.run(sh("true", timeout_s=0.1))
    assert box.run(sh("echo on")).stdout == b"on\n"


def test_an_agent_that_dies_ends_what_is_under_way_and_all_that_comes(box, agent):
    with box.start(sh("echo up; sleep 1000")) as running:
        assert next(running).data == b"up\n"
        os.kill(agent.pid, signal.SIGKILL)
        with pytest.raises(AgentGone):
            next(running)
    for _ in range(2):
        with pytest.raises(AgentGone):
            box.run(sh("true"))
    assert not box.alive


def test_closing_the_connection_ends_the_agent_and_everything_it_started(program, marker):
    agent = Agent(program)
    with Connection(agent.sock) as box:
        box.background(sh(f"setsid sleep {marker} & sleep {marker}"))
        box.open_shell(env=ENV)
        until(lambda: len(holding(marker)) == 2)
    agent.end()
    until(lambda: not holding(marker))
    assert agent.process.returncode == 0


def test_nothing_can_be_asked_after_the_end(agent):
    box = Connection(agent.sock)
    box.close()
    box.close()
    with pytest.raises(AgentGone, match="closed"):
        box.ping()


def test_a_child_of_fork_is_told_and_the_parent_goes_on(agent):
    with Connection(agent.sock) as box:
        box.ping()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                box.ping()
            except AgentGone as error:
                code = 0 if "connect anew" in str(error) else 2
            box.close()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert box.run(sh("echo on")).stdout == b"on\n"


def test_a_child_of_fork_is_told_by_the_asyncio_client_too(agent):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            child = os.fork()
            if child == 0:
                procedure = box.ping()
                try:
                    procedure.send(None)
                except AgentGone:
                    os._exit(0)
                finally:
                    os._exit(1)
            assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
            await box.ping()

    asyncio.run(body())


def test_threads_share_a_connection_and_each_gets_its_own_answer(agent):
    wrong = []

    def work(box, name):
        for n in range(25):
            said = f"{name}-{n}\n".encode()
            if box.run(Exec(("echo", f"{name}-{n}"), env=ENV)).stdout != said:
                wrong.append((name, n))
            with box.start(sh("echo a; echo b >&2")) as running:
                if running.result().stdout_total != 2:
                    wrong.append((name, "stream"))

    with Connection(agent.sock) as box:
        threads = [threading.Thread(target=work, args=(box, name)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not box._mux.under_way()
    assert wrong == []


def test_a_thread_that_waits_long_does_not_hold_up_the_others(agent, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    said = []
    with Connection(agent.sock) as box:
        slow = threading.Thread(
            target=lambda: said.append(box.run(sh(f"cat {fifo}", timeout_s=None)).stdout)
        )
        slow.start()
        until(box.actions)
        for _ in range(20):
            assert box.run(Exec(("true",), env=ENV)).code == 0
        fifo.write_bytes(b"go")
        slow.join()
    assert said == [b"go"]


def test_tasks_share_a_connection_and_each_gets_its_own_answer(agent):
    async def body():
        async with await AsyncConnection.over(agent.sock) as box:
            got = await asyncio.gather(
                *(box.run(Exec(("echo", str(n)), env=ENV)) for n in range(40))
            )
            assert [r.stdout for r in got] == [f"{n}\n".encode() for n in range(40)]

    asyncio.run(body())


def test_a_handler_of_a_signal_may_close_what_its_own_thread_waits_on(agent, marker):
    box = Connection(agent.sock)
    before = signal.signal(signal.SIGUSR1, lambda *_: box.close())
    watch = threading.Thread(
        target=lambda: (
            until(lambda: holding(marker)),
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1),
        )
    )
    watch.start()
    try:
        with pytest.raises(AgentGone, match="closed"):
            box.run(sh(f"sleep {marker}", timeout_s=None))
    finally:
        watch.join()
        signal.signal(signal.SIGUSR1, before)
    until(lambda: not holding(marker))


def test_closing_in_another_thread_wakes_whoever_waits(agent, marker):
    raised = []

    def wait():
        try:
            box.run(sh(f"sleep {marker}", timeout_s=None))
        except AgentGone as error:
            raised.append(str(error))

    box = Connection(agent.sock)
    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(holding(marker)) >= 3)
    box.close()
    for thread in threads:
        thread.join()
    assert len(raised) == 3
    until(lambda: not holding(marker))
