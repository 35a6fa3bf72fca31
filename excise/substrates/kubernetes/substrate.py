"""A pod per sandbox, actions by the API server's exec: the verbs of the contract."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from excise.errors import Phase, SandboxGone, SubstrateError
from excise.noting import ANSWERED, READY_SEEN, note
from excise.substrates.base import Shell
from excise.substrates.container import owner
from excise.substrates.ending import settled, to_the_end
from excise.substrates.exec_shell import ExecShell
from excise.substrates.kubernetes import failures, files, sweeping
from excise.substrates.kubernetes.actions import Actions
from excise.substrates.kubernetes.cluster import Cluster, NotRunning
from excise.substrates.kubernetes.facts import facts_of
from excise.substrates.kubernetes.images import Images
from excise.substrates.kubernetes.network import Network
from excise.substrates.kubernetes.objects import Objects, objects_of
from excise.substrates.kubernetes.options import Options
from excise.substrates.kubernetes.pod import pod_of
from excise.substrates.kubernetes.watching import Pod, Watch
from excise.substrates.script import check, spill
from excise.types import Action, Handle, Observation, Repo, Spec

_HANDLE = re.compile(r"excise-[0-9a-f]{16}")
_LONGEST_ARGUMENT = 32 * 1024
"""The command is part of the request's address, and what stands between us and the server may be strict with those."""
TRY_AGAIN_S = 0.05


class Kubernetes:
    """Drives one cluster. See the package for what is covered and what is not."""

    interval_s = 1.0
    """How often a kubelet looks what its containers do."""

    def __init__(self, options: Options) -> None:
        self.name = options.name
        self.isolation = options.isolation
        self._options = options
        self._me = owner.myself()
        self._session = secrets.token_hex(8)
        self._cluster = Cluster(options)
        self._objects: Objects = objects_of(options, self._cluster)
        self._watch = Watch(self._cluster, self._session)
        self._actions = Actions(self._cluster, self._gone)
        self._images = Images(self._cluster, options)
        self._network = Network(self._cluster)
        self._shells: dict[Handle, list[ExecShell]] = {}
        self._answered: set[Handle] = set()

    def __repr__(self) -> str:
        return f"<Kubernetes {self.name} {self._options}>"

    async def create(self, spec: Spec) -> Handle:
        box = Handle(f"excise-{secrets.token_hex(8)}")
        image = await self._images.resolve(spec.image)
        body = self._body(box, spec, image)
        await self._network.prepare(spec.egress)
        self._watch.begin(box)
        posting = asyncio.ensure_future(self._objects.create(body))
        try:
            await asyncio.shield(posting)
            await self._until(box, failures.is_placed, Phase.CREATE)
            if spec.repo is not None:
                await self._first_answer(box, Phase.CREATE)
                await self._upload(box, spec.repo)
        except BaseException:
            await to_the_end(settled(posting))
            with contextlib.suppress(SubstrateError):  # what went wrong first is what counts
                await to_the_end(self.destroy(box))
            raise
        return box

    async def ready(self, box: Handle) -> None:
        """Both moments are noted: the first answer, and the condition Ready, which the kubelet is slow to say."""
        self._named(box, Phase.READY)
        waits = [self._first_answer(box, Phase.READY)]
        if self._options.wait == "condition":
            waits.append(self._said_to_be_ready(box))
        await _all(waits)

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        self._named(box, Phase.RUN)
        script = f"/tmp/.excise-{secrets.token_hex(8)}"  # noqa: S108  # in the pod
        spilled = spill(action.argv, script, limit_bytes=_LONGEST_ARGUMENT)
        async with self._explained(box):
            if spilled is None:
                return await self._actions.run(box, action, action.argv)
            data = f"rm -f {script}; ".encode() + spilled.data
            await files.write(self._actions, box, script, data)
            return await self._actions.run(box, action, spilled.argv)

    async def destroy(self, box: Handle) -> None:
        """The pod is gone from the API when this returns; its node needs another moment for the processes."""
        self._named(box, Phase.DESTROY)
        for shell in self._shells.pop(box, ()):
            shell.forget()
        self._answered.discard(box)
        try:
            await self._objects.delete(box)
        finally:
            self._watch.forget(box)
            self._actions.forget(box)

    async def open_shell(self, box: Handle) -> Shell:
        self._named(box, Phase.RUN)
        token = secrets.token_hex(16)
        async with self._explained(box):
            running = await self._actions.open(box, token)
        shell = ExecShell(self.name, running, lambda: self._actions.kill(box, token))
        await shell.begin()
        self._shells.setdefault(box, []).append(shell)
        return shell

    async def read(self, box: Handle, path: str) -> bytes:
        self._named(box, Phase.RUN)
        async with self._explained(box):
            return await files.read(self._actions, box, path)

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        self._named(box, Phase.RUN)
        async with self._explained(box):
            await files.write(self._actions, box, path, data)

    async def has_image(self, reference: str) -> bool:
        return await self._images.has(reference)

    async def import_image(self, reference: str, archive: Path) -> None:
        await self._images.load(reference, archive)

    async def host_address(self) -> str:
        return self._network.host_address()

    async def sweep(self) -> int:
        """Remove the pods of this namespace whose owner, a process of this host, is certainly dead."""
        return await sweeping.sweep(self._cluster, self._me)

    async def describe(self) -> dict[str, str]:
        return {**await facts_of(self._cluster, self._options), "egress": self._network.words()}

    async def close(self) -> None:
        """Let go of the cluster; the pods stay."""
        for shells in self._shells.values():
            for shell in shells:
                shell.forget()
        self._shells.clear()
        await self._watch.close()
        await self._cluster.close()

    def _body(self, box: Handle, spec: Spec, image: str) -> dict[str, Any]:
        marked = owner.labels(self._me, spec.labels)
        return pod_of(box, spec, image, self._options, self._session, marked)

    async def _upload(self, box: Handle, repo: Repo) -> None:
        await files.upload(self._actions, box, repo)

    async def _first_answer(self, box: Handle, phase: Phase) -> None:
        if box not in self._answered:
            await self._tried(box, phase, lambda: self._actions.whole(box, ("true",)))
            self._answered.add(box)
            note(ANSWERED)

    async def _said_to_be_ready(self, box: Handle) -> None:
        await self._until(box, failures.is_ready, Phase.READY)
        note(READY_SEEN)

    async def _tried(self, box: Handle, phase: Phase, start: Callable[[], Awaitable[Any]]) -> Any:
        """Try until something can be started in the pod: nobody tells sooner that its container runs."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.patience_s
        while True:
            try:
                return await start()
            except NotRunning:
                await self._explain_trouble(box, phase)
                if loop.time() > end:
                    await self._fail(box, phase)
            await asyncio.sleep(TRY_AGAIN_S)

    async def _until(self, box: Handle, holds: Callable[[Pod], bool], phase: Phase) -> None:
        def settled_now(pod: Pod) -> bool:
            trouble = failures.trouble_of(pod)
            return holds(pod) or (trouble is not None and not trouble.patient)

        pod = await self._watch.until(box, settled_now, phase, self._options.patience_s)
        if pod is None or not holds(pod):
            await self._fail(box, phase)

    async def _explain_trouble(self, box: Handle, phase: Phase) -> None:
        """Raise what the pod's status says, if it is something that does not pass."""
        pod = self._watch.last(box) or await self._watch.look(box, phase)
        trouble = failures.trouble_of(pod)
        if trouble is not None and not trouble.patient:
            await self._fail(box, phase)

    async def _fail(self, box: Handle, phase: Phase) -> None:
        """Raise why this pod does not do what it should, in the cluster's own words."""
        pod = await self._watch.look(box, phase)
        async with self._cluster.asking(phase) as cluster:
            told = await cluster.call(
                "GET", cluster.in_namespace("events"), fieldSelector=f"involvedObject.name={box}"
            )
        events = told["items"]
        trouble = failures.trouble_of(pod)
        trouble = trouble or failures.slowness_of(events, self._options.patience_s)
        raise failures.error_of(trouble, events, box=box, substrate=self.name, phase=phase)

    @contextlib.asynccontextmanager
    async def _explained(self, box: Handle) -> Any:
        """Where a command could not be started, or its connection broke: what has become of the pod?"""
        try:
            yield
        except SubstrateError as error:
            if isinstance(error, NotRunning) or type(error) is SubstrateError:
                await self._explain_trouble(box, Phase.RUN)
            raise

    def _gone(self, text: str) -> SandboxGone:
        return SandboxGone(text, substrate=self.name, phase=Phase.RUN)

    def _named(self, box: Handle, phase: Phase) -> None:
        """Refuse what is no handle of ours before it becomes part of a request's path."""
        if not _HANDLE.fullmatch(box):
            raise SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)


async def _all(waits: list[Coroutine[Any, Any, None]]) -> None:
    """Until all of them are over, or one fails: the others are not waited for then."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
