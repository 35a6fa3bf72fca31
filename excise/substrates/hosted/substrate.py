"""Somebody else's cloud as a substrate: the verbs of the contract over the few things that an SDK is asked for.

Nothing is asked twice: SDKs' own retries are off, because a retry inside a trial is a time that nobody measured. What a
killed owner leaves is found by its labels and swept; beside that every sandbox has a lifetime at its provider.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from excise.errors import ExciseError, InputError, Phase, SandboxGone, SubstrateError
from excise.substrates.container import killing, owner
from excise.substrates.ending import to_the_end
from excise.substrates.hosted.cloud import Cloud, Ran, Running
from excise.substrates.hosted.faults import Told, error_of
from excise.substrates.hosted.lines import Line, line_of, observation_of
from excise.substrates.hosted.options import Options
from excise.substrates.remote import LOOPBACK
from excise.substrates.script import check, spill
from excise.types import Action, Allow, Handle, Isolation, Observation, Spec

HOST_IMAGE = "host"
LINE_LIMIT_BYTES = 64 * 1024
"""Longer scripts go into a file: a line is quoted twice until it arrives, and one argument has 128 KiB."""

_FOLDER = "/tmp"  # noqa: S108  # in the sandbox
_NOTHING = Action(("true",))
_ID = re.compile(r"[A-Za-z0-9_-]+")


class Hosted:
    """One provider's sandboxes."""

    def __init__(
        self, name: str, options: Options, isolation: Isolation, opened: Callable[[], Cloud]
    ) -> None:
        self.name = name
        self.isolation = isolation
        self._options = options
        self._opened = opened
        self._cloud: Cloud | None = None
        self._me = owner.myself()
        self._images: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Hosted {self.name}>"

    @property
    def cloud(self) -> Cloud:
        """Opened by whoever needs it first: opening may read keys, and belongs to one event loop."""
        if self._cloud is None:
            self._cloud = self._opened()
        return self._cloud

    async def create(self, spec: Spec) -> Handle:
        _refuse(self.name, spec)
        labels = _outward(owner.labels(self._me, spec.labels))
        image = self._options.image if spec.image == HOST_IMAGE else self._image(spec.image)
        making = asyncio.ensure_future(self._make(image, spec, labels))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            await to_the_end(self._unmake(making))
            raise

    async def ready(self, box: Handle) -> None:
        """That the provider says it runs is not that a command does: the first one also makes the workspace."""
        made = await self._whole(box, f"mkdir -p -- {self._options.workspace}", Phase.READY)
        if made.code != 0:
            said = (made.out + made.err).strip()[-300:]
            text = f"cannot make the workspace {self._options.workspace}: {said}"
            raise SubstrateError(text, substrate=self.name, phase=Phase.READY)

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        token = secrets.token_hex(8)
        argv, stdin = action.argv, None
        spilled = spill(argv, f"{_FOLDER}/.excise-script-{token}", limit_bytes=LINE_LIMIT_BYTES)
        if spilled is not None:
            place = f"{_FOLDER}/.excise-script-{token}"
            await self._put(box, place, f"rm -f {place}; ".encode() + spilled.data)
            argv = spilled.argv
        if action.stdin:
            stdin = f"{_FOLDER}/.excise-input-{token}"
            await self._put(box, stdin, action.stdin)
        line = line_of(
            action, argv, workspace=self._options.workspace, token=token, mark=killing.MARK, stdin=stdin,
            one_stream=self.cloud.one_stream,
        )  # fmt: skip
        return await self._act(box, action, line)

    async def destroy(self, box: Handle) -> None:
        with contextlib.suppress(SandboxGone), self._asking(Phase.DESTROY):
            await self.cloud.end(self._id(box, Phase.DESTROY))

    async def read(self, box: Handle, path: str) -> bytes:
        with self._asking(Phase.RUN):
            return await self.cloud.get(self._id(box, Phase.RUN), self._absolute(path))

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        await self._put(box, self._absolute(path), data)

    async def has_image(self, reference: str) -> bool:
        """Found out by making one: providers name what they have in many ways, and only this one counts.

        A sandbox with an image of the user's choice has that, whatever is asked for.
        """
        if self._options.image is not None:
            self._images[reference] = self._options.image
            return True
        for candidate in (reference, plain(reference)):
            try:
                box = await self._make(candidate, Spec(), _outward(owner.labels(self._me, {})))
            except InputError:
                continue
            self._images[reference] = candidate
            await self.destroy(box)
            return True
        return False

    async def import_image(self, reference: str, archive: Path) -> None:
        """Into this machine's layer store for a service on it. No SDK takes a root file system, but a registry does."""
        if self._options.on == LOOPBACK:
            from excise.jail.ground import import_archive
            from excise.layers.store import Store

            await asyncio.to_thread(import_archive, Store(), reference, archive)
            if await self.has_image(reference):
                return
        raise InputError(
            f"{self.name} has no image {plain(reference)} (nor {reference}): make one of {archive}, "
            "as docs/hosted.md says, or name one that has all that is needed with image="
        )

    async def host_address(self) -> str:
        """Where a sandbox finds the harness's git server; a cloud finds it nowhere unless `host=` says where."""
        if self._options.host is not None or self._options.on != LOOPBACK:
            return self._options.host or "127.0.0.1"
        from excise.jail.route import host_address

        return host_address()

    async def look(self) -> None:
        """Raises unless the control plane answers and takes the key."""
        with self._asking(Phase.READY):
            async for _ in self.cloud.listed(owner.MINE):
                return

    async def sweep(self) -> int:
        """End the sandboxes of owners on this machine that live no more."""
        swept = 0
        with self._asking(Phase.DESTROY):
            found = [each async for each in self.cloud.listed(owner.MINE)]
        for box, labels in found:
            whose = owner.owner_of(_inward(labels))
            if whose is None:
                continue
            if owner.is_orphan(whose, self._me, owner.started_ticks(whose.pid)):
                await self.destroy(self._handle(box))
                swept += 1
        return swept

    async def describe(self) -> dict[str, str]:
        where = "self-hosted, loopback" if self._options.on == LOOPBACK else "the provider's cloud"
        programs = {} if self._options.image is None else {"programs": "its own"}
        return {
            **programs,
            "deployment": where,
            "limits": "the provider's, by image",
            "retries": "none",
            "user": self._options.user,
            **self.cloud.facts(),
        }

    async def close(self) -> None:
        """Let go of connections. Sandboxes stay until their lifetime ends."""
        if self._cloud is not None:
            await self._cloud.close()
            self._cloud = None

    async def _make(self, image: str | None, spec: Spec, labels: Mapping[str, str]) -> Handle:
        with self._asking(Phase.CREATE):
            async with asyncio.timeout(self._options.create_s):
                return self._handle(await self.cloud.make(image, spec, labels))

    async def _unmake(self, making: asyncio.Future[Handle]) -> None:
        """What nobody waits for any more is waited for here, and ended."""
        with contextlib.suppress(ExciseError):
            await self.destroy(await making)

    async def _act(self, box: Handle, action: Action, line: Line) -> Observation:
        running: Running | None = None
        id_ = self._id(box, Phase.RUN)
        try:
            with self._asking(Phase.RUN):
                async with asyncio.timeout(action.timeout_s) as limit:
                    running = await self.cloud.start(id_, line.text, self._user(action))
                    ran = await running.wait()
        except SubstrateError:
            if not limit.expired():
                raise
            await to_the_end(self._kill(box, line.token))
            heard = Ran(0, "") if running is None else running.heard()
            return observation_of(
                line, 0, heard.out, heard.err, action.output_limit_bytes, timed_out=True
            )
        except asyncio.CancelledError:
            await to_the_end(self._kill(box, line.token))
            raise
        return observation_of(line, ran.code, ran.out, ran.err, action.output_limit_bytes)

    async def _kill(self, box: Handle, token: str) -> None:
        """Kill what carries the token; the whole sandbox where that cannot be done from inside."""
        try:
            killed = await self._whole(box, killing.argv(token)[2], Phase.RUN)
        except SandboxGone:
            return
        except SubstrateError:
            killed = Ran(1, "")
        if killed.code != 0:
            await self.destroy(box)

    async def _whole(self, box: Handle, script: str, phase: Phase) -> Ran:
        """One command of ours, to its end."""
        line = line_of(
            _NOTHING, ("bash", "-c", script), workspace="/", token=secrets.token_hex(8), mark="EXCISE_OWN",
        )  # fmt: skip
        with self._asking(phase):
            async with asyncio.timeout(self._options.create_s):
                running = await self.cloud.start(
                    self._id(box, phase), line.text, self._user(_NOTHING)
                )
                return await running.wait()

    async def _put(self, box: Handle, path: str, data: bytes) -> None:
        with self._asking(Phase.RUN):
            await self.cloud.put(self._id(box, Phase.RUN), path, data)

    @contextlib.contextmanager
    def _asking(self, phase: Phase) -> Iterator[None]:
        """Turns what an SDK raises into what every substrate raises."""
        try:
            yield
        except (ExciseError, FileNotFoundError):
            raise
        except TimeoutError as error:
            told = Told("TimeoutError", "the SDK has not answered in time")
            raise error_of(told, self.name, phase) from error
        except Exception as error:
            said = self.cloud.told(error)
            if said is None:
                raise
            raise error_of(said, self.name, phase) from error

    def _user(self, action: Action) -> str | None:
        return action.user or self._options.user

    def _image(self, image: str) -> str:
        return self._images.get(image, image)

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._options.workspace}/{path}"

    def _handle(self, id_: str) -> Handle:
        return Handle(f"{self.name}-{id_}")

    def _id(self, box: Handle, phase: Phase) -> str:
        prefix, id_ = box[: len(self.name) + 1], box[len(self.name) + 1 :]
        if prefix != f"{self.name}-" or not _ID.fullmatch(id_):
            raise SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)
        return id_


def plain(reference: str) -> str:
    """A reference as a name that every provider takes."""
    return re.sub(r"[^a-z0-9-]+", "-", reference.lower()).strip("-")


def _refuse(name: str, spec: Spec) -> None:
    """What no SDK can be asked for is refused before one is."""
    if spec.repo is not None or spec.deps:
        raise InputError(
            f"{name} lays no repository and no dependencies: name an image that holds them"
        )
    if spec.warm:
        raise InputError(f"{name} keeps no interpreter warm: leave Spec.warm out, or take a jail")
    if isinstance(spec.egress, Allow):
        raise InputError(
            f"{name} is asked for all of the network or none, not for a list of targets"
        )
    if spec.user is not None:
        raise InputError(
            f"{name} takes the user of its commands as an option: {name}:user={spec.user}"
        )


def _outward(labels: Mapping[str, str]) -> dict[str, str]:
    """Our labels have dots, and one of the doors reads those as an environment."""
    return {key.replace(".", "-"): value for key, value in labels.items()}


def _inward(labels: Mapping[str, str]) -> dict[str, str]:
    return {re.sub("^excise-", "excise.", key): value for key, value in labels.items()}
