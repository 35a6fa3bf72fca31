"""A keeper from the driver's side: started, told what to keep, let go of, waited for.

Starting one takes as long as an interpreter and its imports. So one can be started before it is needed: it
waits, at the lowest priority, for its plan and for the descriptors that come with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from excise.jail.phase import failed

_START = """
import sys
sys.path.insert(0, sys.argv[1])
from excise.jail.keeper import main
main()
"""
_ROOT = Path(__file__).parents[2]
_END_S = 5.0


class Keeping:
    """One keeper, and the line to it: closing that ends it, also when this process dies."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, str(_ROOT)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            self._line.close()
            raise
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, plan: dict[str, object], descriptors: Sequence[int]) -> None:
        """What to keep. The descriptors are copied: the caller may close its own."""
        text = json.dumps(plan).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # dead: its answer says so
            sent = socket.send_fds(self._line, [text], list(descriptors))
            self._line.sendall(text[sent:])

    def until_ready_now(self, within_s: float) -> None:
        """Raise SubstrateError unless packets pass by then."""
        ready, _, _ = select.select([self._line], [], [], within_s)
        self._judge(answered=bool(ready))

    async def until_ready(self, within_s: float) -> None:
        """As `until_ready_now`, without blocking the loop."""
        self._judge(answered=await _readable(self._line.fileno(), within_s))

    def let_go(self) -> None:
        """It ends the network's tools, and then itself."""
        self._line.close()

    def end_now(self) -> None:
        """Asked, it goes when the last of its tools has gone; killed, they go soon after it."""
        self.let_go()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.wait()

    async def end(self) -> None:
        """As `end_now`, without blocking the loop."""
        self.let_go()
        try:
            if self._process.poll() is None:
                ended = os.pidfd_open(self._process.pid)
                try:
                    if not await _readable(ended, _END_S):
                        self._process.kill()
                finally:
                    os.close(ended)
        except BaseException:
            self._process.kill()
            raise
        finally:
            self._process.wait()

    def _judge(self, *, answered: bool) -> None:
        if not answered:
            raise failed("the network's tools do not answer", retryable=True)
        with self._line.makefile("rb") as said:
            try:
                line = said.readline()
            except ConnectionResetError:
                line = b""
        if not line:
            raise failed("the network's keeper died", retryable=True)
        answer = json.loads(line)
        if "error" in answer:
            raise failed(f"no network: {answer['error']}", retryable=True)


async def _readable(fd: int, within_s: float) -> bool:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await asyncio.wait_for(ready, within_s)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
    return True
