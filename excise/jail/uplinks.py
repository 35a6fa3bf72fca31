"""The networks of one driver's jails: a keeper that is ready before it is asked for, and those that are on their way out.

A rollout waits neither for an interpreter to start nor for the tools of the last one to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from excise.jail.egress import Network, open_egress, open_egress_now
from excise.jail.keeping import Keeping
from excise.types import Allow, Egress


class Uplinks:
    """Opens networks and lets go of them; one keeper is kept ahead once there was need of any. Thread-safe."""

    def __init__(self, parents: Uplinks | None = None) -> None:
        self._parents = parents
        """Those of the process that this one was forked from: theirs to end."""
        self._lock = threading.Lock()
        self._ahead: Keeping | None = None
        self._going: list[Keeping] = []
        self._closed = False

    async def open(self, pid: int, egress: Egress | Allow) -> Network:
        """Give the jail whose init is `pid` its network; return when packets pass."""
        self._closed = False
        network = await open_egress(pid, egress, start=self._take)
        asyncio.get_running_loop().call_soon(self._restock)
        return network

    def open_now(self, pid: int, egress: Egress | Allow) -> Network:
        """As `open`, for callers without an event loop."""
        self._closed = False
        network = open_egress_now(pid, egress, start=self._take)
        self._restock()
        return network

    def let_go(self, network: Network) -> None:
        """It ends behind the caller's back; `close` waits for it."""
        keeping = network.released()
        if keeping is None:
            return
        keeping.let_go()
        with self._lock:
            self._going = [each for each in self._going if each.alive]
            self._going.append(keeping)

    def close(self) -> None:
        """Wait until nothing of it is left. Idempotent; the next use starts anew."""
        with self._lock:
            self._closed = True
            left, self._going = self._going, []
            if self._ahead is not None:
                left.append(self._ahead)
                self._ahead = None
        for each in left:
            each.let_go()
        for each in left:
            each.end_now()

    def _take(self) -> Keeping:
        with self._lock:
            ahead, self._ahead = self._ahead, None
            if ahead is not None and not ahead.alive:
                ahead.let_go()
                ahead = None
        return ahead or Keeping()

    def _restock(self) -> None:
        with self._lock:
            if self._ahead is None and not self._closed:
                with contextlib.suppress(OSError):  # then there is none ahead
                    self._ahead = Keeping()
