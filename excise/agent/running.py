"""What stays open on a blocking connection: an action whose output is streamed, and a persistent shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from excise.agent import messages, procedures
from excise.agent.answers import Result
from excise.agent.channel import Channel
from excise.agent.hold import Hold
from excise.agent.mux import Output, Stream
from excise.types import MIB


class Running(Iterator[Output]):
    """An action under way: iterate over what it writes, then ask for its `result`.

    At most a megabyte is under way that nobody has taken; beyond that the action waits. Leaving the
    `with` block kills what was started and detaches from what was attached.
    """

    def __init__(self, channel: Channel, stream: Stream, *, pty: bool = False) -> None:
        self._channel = channel
        self._hold = Hold(channel.mux, stream, pty=pty)

    @property
    def id(self) -> int:
        """Names the action on this connection."""
        return self._hold.stream.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __next__(self) -> Output:
        self._channel.wait(self._hold.stream)
        output, reply = self._hold.take()
        if reply:
            self._channel.post(reply)
        if output is None:
            raise StopIteration
        return output

    def result(self) -> Result:
        """How it ended; output that was not taken yet is dropped. Waits for the end."""
        for _ in self:
            pass
        return self._hold.result()

    def write(self, data: bytes) -> None:
        """Standard input, or what is typed at the terminal."""
        for piece in self._hold.typed(data):
            self._channel.post(piece)

    def end_of_input(self) -> None:
        """Nothing more is written; at a terminal that is control-D."""
        if data := self._hold.end_of_input():
            self._channel.post(data)

    def signal(self, number: int, *, whole_tree: bool = True) -> None:
        """To everything that the action started, or to its first process alone."""
        self._channel.do(
            procedures.signal(self._channel.mux, self.id, number, whole_tree=whole_tree)
        )

    def resize(self, rows: int, columns: int) -> None:
        """The terminal has another size from now on."""
        self._channel.post(messages.resize(self.id, rows, columns))

    def detach(self) -> None:
        """Listen no more: it goes on in the background, its output is kept, head and tail; unless it has ended."""
        procedure = procedures.detach(self._channel.mux, self._hold.stream)
        self._hold.detached = self._channel.do(procedure)

    def close(self) -> None:
        """Be done with it, whatever state it is in."""
        if data := self._hold.let_go():
            self._channel.post(data)


class Shell:
    """A bash that stays. When it has ended, every further script is refused."""

    def __init__(self, channel: Channel, id_: int) -> None:
        self._channel = channel
        self.id = id_

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(
        self, script: str, *, timeout_s: float | None = 60.0, output_limit: int = 64 * MIB
    ) -> Result:
        mux = self._channel.mux
        return self._channel.do(
            procedures.run_in_shell(mux, self.id, script, timeout_s, output_limit)
        )

    def close(self) -> None:
        """End the shell and what it started."""
        if not self._channel.mux.failed:
            self._channel.do(procedures.close_shell(self._channel.mux, self.id))
