"""A client's hold on one streamed action, without the I/O: what to send for what the holder does, and what there is to take."""

from __future__ import annotations

from collections.abc import Iterator

from excise.agent import messages
from excise.agent.answers import Result
from excise.agent.mux import Mux, Output, Stream
from excise.errors import LifecycleError


class Hold:
    """Shared by the blocking and the asyncio client; both send whatever comes back, if it is not empty."""

    def __init__(self, mux: Mux, stream: Stream, *, pty: bool) -> None:
        self.mux = mux
        self.stream = stream
        self.detached = False
        self._pty = pty
        self._fed = False

    def take(self) -> tuple[Output | None, bytes]:
        """The next output, or None at the end; raises what ended it otherwise."""
        taken = self.stream.take()
        if taken is not None:
            return taken
        if not self.detached:
            self.stream.value()
        return None, self._input_dropped()

    def result(self) -> Result:
        """How it ended, once everything has been taken."""
        if self.detached:
            text = f"action {self.stream.id} was detached: attach to it to hear of its end"
            raise LifecycleError(text)
        return self.stream.value()

    def typed(self, data: bytes) -> Iterator[bytes]:
        """More standard input, in pieces; none for an action that has ended."""
        for piece in messages.stdin_pieces(self.stream.id, data):
            if self.stream.done:
                return
            self._fed = True
            yield piece

    def end_of_input(self) -> bytes:
        """At a terminal that is control-D."""
        if self.stream.done:
            return b""
        if self._pty:
            return b"".join(self.typed(b"\x04"))
        return messages.stdin_end(self.stream.id)

    def let_go(self) -> bytes:
        """Kill what was started, leave what was attached to itself, forget what has ended."""
        if self.mux.failed:
            return b""
        if self.stream.done:
            return self._input_dropped()
        started = self.stream.kills
        return self.mux.abandon(self.stream) if started else self._left()

    def _left(self) -> bytes:
        self.mux.aside(self.stream.id, None)
        self.mux.abandon(self.stream)
        return messages.detach(self.stream.id)

    def _input_dropped(self) -> bytes:
        """Input that came too late is kept for an action that will never be; have it dropped."""
        fed, self._fed = self._fed, False
        return messages.stdin_end(self.stream.id) if fed and not self.mux.failed else b""
