"""What becomes of this object's pods, told by one watch for all of them and not asked pod by pod."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from excise.errors import ExciseError, Phase
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.pod import SESSION

Pod = Mapping[str, Any]

AGAIN_S = 0.2
LOOK_S = 5.0
"""A watch may miss what happened while it was broken: so often whoever waits looks for itself."""


class Watch:
    """The pods with one session's label, as last told. Begun on first use; good for one event loop."""

    def __init__(self, cluster: Cluster, session: str) -> None:
        self._cluster = cluster
        self._session = session
        self._pods: dict[str, Pod] = {}
        self._changed: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._task: asyncio.Task[None] | None = None

    def begin(self, box: str) -> None:
        """From now on keep what is told of this one."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._pods.clear()
            self._changed.clear()
            self._task = loop.create_task(self._follow())
        self._changed[box].clear()

    def last(self, box: str) -> Pod | None:
        return self._pods.get(box)

    async def until(
        self, box: str, holds: Callable[[Pod], bool], phase: Phase, within_s: float
    ) -> Pod | None:
        """The pod as soon as that holds for it; None if it did not in time. SandboxGone if there is none."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while (left_s := end - loop.time()) > 0:
            changed = self._changed[box]
            pod = self._pods.get(box)
            if pod is not None and holds(pod):
                return pod
            changed.clear()
            try:
                async with asyncio.timeout(min(LOOK_S, left_s)):
                    await changed.wait()
            except TimeoutError:
                self._pods[box] = await self.look(box, phase)
        pod = self._pods.get(box)
        return pod if pod is not None and holds(pod) else None

    async def look(self, box: str, phase: Phase) -> Pod:
        async with self._cluster.asking(phase) as cluster:
            return await cluster.call("GET", cluster.in_namespace("pods", box))

    def forget(self, box: str) -> None:
        self._pods.pop(box, None)
        self._changed.pop(box, None)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(ExciseError):
                async with self._cluster.asking(Phase.CREATE, deadline_s=None) as cluster:
                    told = cluster.follow(
                        cluster.in_namespace("pods"),
                        watch="1",
                        labelSelector=f"{SESSION}={self._session}",
                    )
                    async with contextlib.aclosing(told):
                        async for event in told:
                            self._take(event)
            await asyncio.sleep(AGAIN_S)

    def _take(self, event: Mapping[str, Any]) -> None:
        if event.get("type") not in {"ADDED", "MODIFIED", "DELETED"}:
            return
        pod = event["object"]
        box = pod["metadata"]["name"]
        if event["type"] == "DELETED":
            pod = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "gone"}}
        if box in self._changed:  # nobody waits for the others (any more)
            self._pods[box] = pod
            self._changed[box].set()
