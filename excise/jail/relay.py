"""Carries DNS messages between a jail and a name server on the host's loopback, which no packet can reach.

It listens in the jail's network and asks from the host's, and looks into nothing that it carries.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from dataclasses import dataclass, field

from excise.jail.uplink import NAME_SERVER

PORT = 53
_MOST_QUESTIONS, _MOST_LINES = 256, 32
_PATIENCE_S = 10.0
_LONGEST = 65535


@dataclass(slots=True)
class Relay:
    """Made inside, served outside: the sockets stay where they were made."""

    datagrams: socket.socket
    lines: socket.socket
    waiting: dict[socket.socket, object] = field(default_factory=dict)
    """By the socket on which the answer will come: who asked, the oldest question first."""

    @classmethod
    def listening(cls) -> Relay:
        """In the network name space that this process is in just now."""
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind((NAME_SERVER, PORT))
        return cls(datagrams, socket.create_server((NAME_SERVER, PORT)))

    def serve(self, server: str) -> None:
        """Ask that server, for ever."""
        family = socket.AF_INET6 if ":" in server else socket.AF_INET
        threading.Thread(target=self._serve_lines, args=(server,), daemon=True).start()
        with selectors.DefaultSelector() as ready:
            ready.register(self.datagrams, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    assert isinstance(key.fileobj, socket.socket)
                    if key.fileobj is self.datagrams:
                        self._ask(ready, family, server)
                    else:
                        self._answer(ready, key.fileobj)

    def _ask(self, ready: selectors.BaseSelector, family: int, server: str) -> None:
        question, asker = self.datagrams.recvfrom(_LONGEST)
        if len(self.waiting) >= _MOST_QUESTIONS:
            self._forget(ready, next(iter(self.waiting)))
        upstream = socket.socket(family, socket.SOCK_DGRAM)
        try:
            upstream.connect((server, PORT))
            upstream.send(question)
        except OSError:
            upstream.close()  # as lost as any datagram; who asked will ask again
            return
        self.waiting[upstream] = asker
        ready.register(upstream, selectors.EVENT_READ)

    def _answer(self, ready: selectors.BaseSelector, upstream: socket.socket) -> None:
        asker = self.waiting[upstream]
        with contextlib.suppress(OSError):
            self.datagrams.sendto(upstream.recv(_LONGEST), asker)  # type: ignore[call-overload]
        self._forget(ready, upstream)

    def _forget(self, ready: selectors.BaseSelector, upstream: socket.socket) -> None:
        del self.waiting[upstream]
        ready.unregister(upstream)
        upstream.close()

    def _serve_lines(self, server: str) -> None:
        free = threading.Semaphore(_MOST_LINES)
        while True:
            line, _ = self.lines.accept()
            free.acquire()
            threading.Thread(target=_carry, args=(line, server, free), daemon=True).start()


def _carry(line: socket.socket, server: str, free: threading.Semaphore) -> None:
    """One connection each way, until either side has been silent for too long."""
    try:
        with line, socket.create_connection((server, PORT), _PATIENCE_S) as upstream:
            line.settimeout(_PATIENCE_S)
            while question := _message(line):
                upstream.sendall(question)
                line.sendall(_message(upstream))
    except OSError:
        return  # closed, silent or refused: what the asker sees is a closed connection
    finally:
        free.release()


def _message(line: socket.socket) -> bytes:
    """A message as TCP carries it, with its length before it; nothing at the end."""
    head = _exactly(line, 2)
    return head + _exactly(line, int.from_bytes(head, "big")) if head else b""


def _exactly(line: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = line.recv(size - len(got))
        if not more:
            return b""
        got += more
    return got
