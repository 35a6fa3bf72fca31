"""The control line: whoever asks gets his own answer, in whatever order they come and whoever reads them."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from excise.jail.control import Created, Gone, Ok, Op, Said
from excise.jail.line import Line, LineClosed

HEAD = struct.Struct("<II")


class Peer:
    """The other end, which answers when a test says so."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def heard(self) -> tuple[int, int, bytes]:
        message = self.sock.recv(1 << 17)
        op, tag = HEAD.unpack_from(message)
        return op, tag, message[8:]

    def say(self, said: Said, tag: int, body: bytes = b"", fd: int | None = None) -> None:
        socket.send_fds(self.sock, [HEAD.pack(said, tag) + body], [] if fd is None else [fd])


@pytest.fixture
def ends() -> Iterator[tuple[Line, Peer, list[Gone]]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    deaths: list[Gone] = []
    line = Line(ours, deaths.append)
    yield line, Peer(theirs), deaths
    line.close()
    theirs.close()


def test_answers_in_any_order_reach_the_threads_that_asked(
    ends: tuple[Line, Peer, list[Gone]],
) -> None:
    line, peer, _ = ends
    got: dict[bytes, bytes] = {}

    def ask(body: bytes) -> None:
        answer = line.ask(Op.UPPER, body, timeout_s=20).answer
        assert isinstance(answer, Ok)
        got[body] = answer.body

    threads = [threading.Thread(target=ask, args=(b"%d" % i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    asked = [peer.heard() for _ in threads]
    for _, tag, body in reversed(asked):
        peer.say(Said.OK, tag, body * 2)
    for thread in threads:
        thread.join()
    assert got == {b"%d" % i: b"%d" % i * 2 for i in range(8)}


def test_answers_in_any_order_reach_the_tasks_that_asked(
    ends: tuple[Line, Peer, list[Gone]],
) -> None:
    line, peer, _ = ends

    async def scenario() -> None:
        tasks = [
            asyncio.ensure_future(line.ask_async(Op.UPPER, b"%d" % i, timeout_s=20))
            for i in range(8)
        ]
        await asyncio.sleep(0)
        for _, tag, body in reversed([peer.heard() for _ in tasks]):
            peer.say(Said.OK, tag, body)
        answers = [reply.answer for reply in await asyncio.gather(*tasks)]
        assert [a.body for a in answers if isinstance(a, Ok)] == [b"%d" % i for i in range(8)]

    asyncio.run(scenario())


def test_a_thread_that_reads_wakes_the_loop_that_asked(ends: tuple[Line, Peer, list[Gone]]) -> None:
    line, peer, _ = ends

    async def scenario() -> None:
        mine = asyncio.ensure_future(line.ask_async(Op.UPPER, b"loop", timeout_s=20))
        await asyncio.sleep(0)
        reader = asyncio.get_running_loop().run_in_executor(
            None, lambda: line.ask(Op.UPPER, b"thread", timeout_s=20)
        )
        for _ in range(2):
            _, tag, body = await asyncio.to_thread(peer.heard)
            peer.say(Said.OK, tag, body)
        assert (await mine).answer.body == b"loop"  # type: ignore[union-attr]
        assert (await reader).answer.body == b"thread"  # type: ignore[union-attr]

    asyncio.run(scenario())


def test_the_end_of_the_spawner_wakes_everybody(ends: tuple[Line, Peer, list[Gone]]) -> None:
    line, peer, _ = ends
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            line.ask(Op.UPPER, b"", timeout_s=20)
        except LineClosed as error:
            ended.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()

    async def scenario() -> None:
        mine = asyncio.ensure_future(line.ask_async(Op.UPPER, b"", timeout_s=20))
        for _ in range(4):
            await asyncio.to_thread(peer.heard)
        peer.sock.close()
        with pytest.raises(LineClosed):
            await mine

    asyncio.run(scenario())
    for thread in threads:
        thread.join()
    assert len(ended) == 3
    with pytest.raises(LineClosed):
        line.tell(Op.DESTROY, b"")


def test_who_waited_in_vain_is_told_and_the_late_descriptor_is_closed(
    ends: tuple[Line, Peer, list[Gone]],
) -> None:
    line, peer, _ = ends
    with pytest.raises(TimeoutError):
        line.ask(Op.CREATE, b"", box=1, timeout_s=0.01)
    _, tag, _ = peer.heard()
    out, into = os.pipe()
    peer.say(Said.CREATED, tag, struct.pack("<II", 1, 1), into)
    os.close(into)

    threading.Thread(target=lambda: peer.say(Said.OK, peer.heard()[1])).start()
    line.ask(Op.UPPER, b"", timeout_s=20)
    assert os.read(out, 1) == b"", "nobody holds the other end any more"
    os.close(out)


def test_the_death_of_a_box_answers_who_waits_for_its_birth(
    ends: tuple[Line, Peer, list[Gone]],
) -> None:
    line, peer, deaths = ends

    def speak() -> None:
        peer.heard()
        peer.say(Said.GONE, 0, struct.pack("<IIiI", 6, 1, -9, 0))
        peer.say(Said.GONE, 0, struct.pack("<IIiI", 7, 2, -9, 1))

    threading.Thread(target=speak).start()
    reply = line.ask(Op.CREATE, b"", box=7, timeout_s=20)
    assert reply.answer == Gone(box=7, kit=2, end=-9, oom_kills=1)
    assert [death.box for death in deaths] == [6, 7]


def test_a_descriptor_comes_with_its_answer(ends: tuple[Line, Peer, list[Gone]]) -> None:
    line, peer, _ = ends
    out, into = os.pipe()

    def speak() -> None:
        peer.say(Said.CREATED, peer.heard()[1], struct.pack("<II", 5, 6), into)
        os.close(into)

    threading.Thread(target=speak).start()
    reply = line.ask(Op.CREATE, b"", box=1, timeout_s=20)
    assert isinstance(reply.answer, Created)
    assert (reply.answer.pid, reply.answer.kit) == (5, 6)
    assert reply.fd is not None
    os.write(reply.fd, b"x")
    assert os.read(out, 1) == b"x"
    os.close(reply.fd)
    os.close(out)
