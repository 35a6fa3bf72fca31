"""Output as it arrives: all of it while it fits, else its head and its tail, always with an exact count."""

from __future__ import annotations

from collections import deque


class Capture:
    """Keeps the first and the last half of `limit_bytes`. Memory is bounded; cost is linear."""

    def __init__(self, limit_bytes: int) -> None:
        self.total_bytes = 0
        self._tail_limit = limit_bytes // 2
        self._head_room = limit_bytes - self._tail_limit
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        if self._head_room:
            self._head.append(data[: self._head_room])
            data = data[self._head_room :]
            self._head_room -= len(self._head[-1])
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
                self._tail_bytes -= len(self._tail.popleft())
                if not self._tail:
                    break

    @property
    def truncated(self) -> bool:
        return self.total_bytes > sum(map(len, self._head)) + min(
            self._tail_bytes, self._tail_limit
        )

    @property
    def kept(self) -> bytes:
        """What is left of it: everything, or head and tail put together."""
        tail = b"".join(self._tail)
        return b"".join(self._head) + tail[max(0, len(tail) - self._tail_limit) :]
