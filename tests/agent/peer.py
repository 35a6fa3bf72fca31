"""An agent that says what a test tells it to: for what the real one never does."""

import socket
import threading

from excise.agent.frames import Frames

REQUESTS = frozenset(range(256))


class Peer:
    """Calls `answer` with every frame that comes and sends what it returns."""

    def __init__(self, answer, kind=socket.socket):
        ours, self.sock = socket.socketpair()
        self.ours = kind(fileno=ours.detach())
        self.seen = []
        self._answer = answer
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        for sock in (self.ours, self.sock):
            if sock.fileno() >= 0:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    sock.close()
        self._thread.join()
        self.ours.close()
        self.sock.close()

    def _serve(self):
        frames = Frames(ops=REQUESTS)
        try:
            while data := self.sock.recv(65536):
                for frame in frames.feed(data):
                    self.seen.append(frame)
                    for piece in self._answer(frame):
                        self.sock.sendall(piece)
        except OSError:
            return
