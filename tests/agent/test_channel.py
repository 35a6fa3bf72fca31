"""What a well-behaved agent never does, and what depends on who comes first: against an agent that is told what to say."""

import asyncio
import socket
import stat
import threading

import pytest

from excise.agent import channel, wire
from excise.agent.answers import Entry
from excise.agent.async_channel import AsyncChannel
from excise.agent.async_connection import AsyncConnection
from excise.agent.connection import Connection
from excise.agent.errors import AgentGone, AgentProtocolError, AgentTimeout
from excise.agent.frames import Frames
from excise.agent.messages import Exec
from excise.types import MIB
from tests.agent.conftest import until
from tests.agent.peer import REQUESTS, Peer
from tests.unit.agent import words

DO = Exec(("anything",))


def test_answers_that_come_byte_by_byte_are_whole_in_the_end():
    def answer(frame):
        data = words.result(frame.id, code=3, stdout=b"out", stderr=b"err")
        return [data[n : n + 1] for n in range(len(data))]

    with Peer(answer) as peer, Connection(peer.ours) as box:
        found = box.run(DO)
    assert (found.code, found.stdout, found.stderr) == (3, b"out", b"err")


def test_threads_get_their_own_answers_in_whatever_order_they_come():
    held = []

    def answer(frame):
        held.append(frame)
        if len(held) < 8:
            return []
        return [words.result(f.id, stdout=words.asked(f.body).argv[0].encode()) for f in held[::-1]]

    got = {}

    def work(box, name):
        got[name] = box.run(Exec((name,))).stdout

    with Peer(answer) as peer, Connection(peer.ours) as box:
        threads = [threading.Thread(target=work, args=(box, str(n))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == {str(n): str(n).encode() for n in range(8)}


def test_a_client_that_sends_much_takes_what_is_sent_to_it_meanwhile():
    """The peer reads nothing more until it has got rid of a megabyte: two full buffers would stand for ever."""

    def answer(frame):
        if frame.op == wire.OP_EXEC:
            return [words.frame(wire.OP_OUTPUT, frame.id, bytes(MIB), flags=wire.STDOUT)]
        if frame.op == wire.OP_WRITE and words.Reader(frame.body).numbers("I")[0] & wire.WRITE_LAST:
            return [words.frame(wire.OP_DONE, frame.id)]
        return []

    with Peer(answer) as peer, Connection(peer.ours) as box:
        running = box.start(DO)
        box.write("/file", bytes(20 * MIB))
        assert len(next(running).data) == MIB


def test_an_agent_that_takes_nothing_any_more_hangs(monkeypatch):
    monkeypatch.setattr(channel, "PATIENCE_S", 0.1)
    ours, theirs = socket.socketpair()
    with theirs, Connection(ours) as box:
        with pytest.raises(AgentTimeout):
            box.write("/file", bytes(20 * MIB))
        with pytest.raises(AgentGone, match="as a whole"):
            box.ping()


def garbage(_):
    return [b"HTTP/1.1 500 Internal Server Error\r\n\r\n"]


def wrong_kind(frame):
    return [words.frame(wire.OP_PONG, frame.id, bytes(8))]


def cut_short(frame):
    return [words.frame(wire.OP_RESULT, frame.id, bytes(20))]


@pytest.mark.parametrize("answer", [garbage, wrong_kind, cut_short])
def test_what_is_not_the_protocol_ends_the_connection_for_both_clients(answer):
    with Peer(answer) as peer, Connection(peer.ours) as box:
        for _ in range(2):
            with pytest.raises(AgentProtocolError):
                box.run(DO)

    async def body(peer):
        async with await AsyncConnection.over(peer.ours) as box:
            for _ in range(2):
                with pytest.raises(AgentProtocolError):
                    await box.run(DO)

    with Peer(answer) as peer:
        asyncio.run(body(peer))


def test_an_agent_that_goes_in_the_middle_of_an_answer_is_gone():
    def answer(frame):
        yield words.result(frame.id, stdout=b"never whole")[:-3]
        raise OSError

    async def body(peer):
        async with await AsyncConnection.over(peer.ours) as box:
            with pytest.raises(AgentGone):
                await box.run(DO)

    with Peer(answer) as peer, Connection(peer.ours) as box:
        threading.Timer(0.2, peer.sock.shutdown, [socket.SHUT_RDWR]).start()
        with pytest.raises(AgentGone):
            box.run(DO)
    with Peer(answer) as peer:
        threading.Timer(0.2, peer.sock.shutdown, [socket.SHUT_RDWR]).start()
        asyncio.run(body(peer))


class Torn(socket.socket):
    """Is interrupted in its next receive, before or after something was received."""

    interrupt = ""

    def recv_into(self, *args):
        what, self.interrupt = self.interrupt, ""
        if what == "before":
            raise KeyboardInterrupt
        size = super().recv_into(*args)
        if what == "after":
            raise KeyboardInterrupt
        return size


def test_an_interrupt_that_loses_nothing_leaves_the_connection_whole():
    with Peer(lambda f: [words.result(f.id)] if f.op == wire.OP_EXEC else [], Torn) as peer:
        box = Connection(peer.ours)
        peer.ours.interrupt = "before"
        with pytest.raises(KeyboardInterrupt):
            box.run(DO)
        assert box.run(DO).code == 0
        until(lambda: len(peer.seen) == 4)
        assert [f.op for f in peer.seen] == [
            wire.OP_EXEC, wire.OP_SIGNAL, wire.OP_STDIN_END, wire.OP_EXEC,
        ]  # fmt: skip


def test_an_interrupt_that_loses_part_of_an_answer_ends_the_connection():
    with Peer(lambda f: [words.result(f.id)], Torn) as peer:
        box = Connection(peer.ours)
        peer.ours.interrupt = "after"
        with pytest.raises(KeyboardInterrupt):
            box.run(DO)
        with pytest.raises(AgentGone, match="interrupt"):
            box.run(DO)


def test_a_late_answer_to_something_cancelled_is_nobody_elses():
    def answer(frame):
        if frame.op == wire.OP_SIGNAL:
            done = words.frame(wire.OP_DONE, frame.id)
            return [done + words.result(frame.id, code=137)]
        if frame.op == wire.OP_EXEC and words.asked(frame.body).argv == ("quick",):
            return [words.result(frame.id, code=5)]
        return []

    async def body(peer):
        async with await AsyncConnection.over(peer.ours) as box:
            for _ in range(20):
                task = asyncio.create_task(box.run(DO))
                await asyncio.sleep(0)
                task.cancel()
                quick = await box.run(Exec(("quick",)))
                assert quick.code == 5
            assert not box._mux.under_way()

    with Peer(answer) as peer:
        asyncio.run(body(peer))


def test_stdin_that_the_agent_has_no_room_for_kills_the_command_that_began_without_it():
    def answer(frame):
        if frame.op == wire.OP_STDIN:
            return [words.error(frame.id, 24, "stdin")]
        return [words.result(frame.id)] if frame.op == wire.OP_EXEC else []

    with Peer(answer) as peer, Connection(peer.ours) as box:
        with pytest.raises(Exception, match="EMFILE"):
            box.run(Exec(("cat",), stdin=bytes(5 * MIB)))
        until(lambda: peer.seen[-1].op == wire.OP_STDIN_END)
        assert peer.seen[-2].op == wire.OP_SIGNAL


def entry(name, mode=stat.S_IFREG | 0o644, target=""):
    return Entry(mode, 0, 0, 1, 0, 1, name, target)


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../evil")],
        [entry("..")],
        [entry(".")],
        [entry("")],
        [entry("/etc/evil")],
        [entry("same", stat.S_IFLNK | 0o777, ".."), entry("same", stat.S_IFDIR | 0o755)],
    ],
)
def test_names_that_lead_out_of_a_download_are_refused(tmp_path, entries):
    def answer(frame):
        if frame.op == wire.OP_DIR:
            return [words.frame(wire.OP_ENTRIES, frame.id, words.entries_body(entries))]
        return [words.frame(wire.OP_DATA, frame.id, bytes(8) + b"x")]

    said = pytest.raises(AgentProtocolError, match="is said to hold")
    with Peer(answer) as peer, Connection(peer.ours) as box, said:
        box.download("/inside", tmp_path / "target")
    assert [p.name for p in tmp_path.iterdir()] == ["target"]
    assert list((tmp_path / "target").iterdir()) == []


def test_a_file_that_becomes_a_link_on_this_side_is_not_written_through(tmp_path):
    target = tmp_path / "target"

    def answer(frame):
        if frame.op == wire.OP_DIR:
            return [words.frame(wire.OP_ENTRIES, frame.id, words.entries_body([entry("file")]))]
        (target / "file").symlink_to(tmp_path / "victim")
        return [words.frame(wire.OP_DATA, frame.id, (1).to_bytes(8, "little") + b"x")]

    refused = pytest.raises(OSError, match="symbolic links")
    with Peer(answer) as peer, Connection(peer.ours) as box, refused:
        box.download("/inside", target)
    assert not (tmp_path / "victim").exists()


class Wire:
    """A transport of nobody's: not a subclass of asyncio's, as those of other event loops are not."""

    def __init__(self, channel):
        self.channel = channel

    def write(self, data):
        (frame,) = Frames(ops=REQUESTS).feed(data)
        loop = asyncio.get_running_loop()
        loop.call_soon(self.channel.data_received, words.result(frame.id, code=9))

    def close(self):
        self.channel.connection_lost(None)


def test_any_transport_carries_the_asyncio_client():
    async def body():
        channel = AsyncChannel()
        channel.connection_made(Wire(channel))
        async with AsyncConnection(channel) as box:
            assert (await box.run(DO)).code == 9

    asyncio.run(body())
