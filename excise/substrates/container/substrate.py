"""A fresh container per sandbox, actions through the engine's own exec: the verbs of the contract."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiodocker
from aiodocker.containers import DockerContainer

from excise.errors import InputError, Phase, SandboxGone, SubstrateError
from excise.substrates.base import Shell
from excise.substrates.container import killing, owner
from excise.substrates.container.actions import Actions
from excise.substrates.container.config import Options, container_config, missing_user_in
from excise.substrates.container.engine import TRANSFER_DEADLINE_S, Engine, address_of
from excise.substrates.container.execution import Command, Running
from excise.substrates.container.files import absolute, pack, packed, unpacked
from excise.substrates.container.images import Images
from excise.substrates.ending import settled, to_the_end
from excise.substrates.exec_shell import ExecShell
from excise.substrates.script import check, spill
from excise.substrates.shell import ARGV
from excise.types import Action, Handle, Observation, Repo, Spec

_HANDLE = re.compile(r"excise-[0-9a-f]{16}")
_MOST_LINKS = 16
_ENDING = "container state improper"
"""What podman says of a container that ends while it is being stopped."""
_AGAIN_S = 0.02


class Container:
    """Drives one engine that speaks the Docker API. See the package for what is covered and what is not."""

    def __init__(self, options: Options) -> None:
        self.name = options.name
        self.isolation = options.isolation
        self._options = options
        self._me = owner.myself()
        self._engine = Engine(self.name, address_of(options), str(self._me))
        self._actions = Actions(self._engine)
        self._images = Images(self._engine, options)
        self._shells: dict[Handle, list[ExecShell]] = {}
        self._has_repo: dict[tuple[str, str], bool] = {}

    def __repr__(self) -> str:
        return f"<Container {self.name} {self._options}>"

    async def create(self, spec: Spec) -> Handle:
        image = await self._images.resolve(spec.image)
        abilities = await self._engine.abilities()
        marked = owner.labels(self._me, spec.labels)
        config = container_config(spec, image, self._options, abilities, marked)
        box = Handle(f"excise-{secrets.token_hex(8)}")
        making = asyncio.ensure_future(self._make(box, config, spec.repo))
        try:
            await asyncio.shield(making)
        except BaseException:
            await to_the_end(settled(making))
            with contextlib.suppress(SubstrateError):  # what went wrong first is what counts
                await to_the_end(self.destroy(box))
            raise
        return box

    async def ready(self, box: Handle) -> None:
        async with self._asking(box, Phase.READY) as client:
            found = await client.containers.container(box).show()
        if not found["State"].get("Running"):
            raise SandboxGone(
                f"the container stopped: {found['State']}", substrate=self.name, phase=Phase.READY
            )

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        self._named(box, Phase.RUN)
        script = f"/tmp/.excise-{secrets.token_hex(8)}"  # noqa: S108  # in the container
        spilled = spill(action.argv, script)
        if spilled is None:
            return await self._actions.run(box, action, action.argv)
        await self.write(box, script, f"rm -f {script}; ".encode() + spilled.data)
        return await self._actions.run(box, action, spilled.argv)

    async def destroy(self, box: Handle) -> None:
        self._named(box, Phase.DESTROY)
        for shell in self._shells.pop(box, ()):
            shell.forget()
        try:
            await self._remove(box)
        except SandboxGone:
            return
        finally:
            self._engine.ooms.pop(box, None)

    async def open_shell(self, box: Handle) -> Shell:
        token = secrets.token_hex(16)
        command = Command(ARGV, absolute("."), {killing.MARK: token}, stdin=None)
        self._named(box, Phase.RUN)
        running = await Running.start(self._engine, box, command)
        shell = ExecShell(self.name, running, lambda: self._actions.kill(box, token, None))
        await shell.begin()
        self._shells.setdefault(box, []).append(shell)
        return shell

    async def read(self, box: Handle, path: str) -> bytes:
        place = absolute(path)
        for _ in range(_MOST_LINKS):
            async with self._asking(box, Phase.RUN, TRANSFER_DEADLINE_S) as client:
                try:
                    found = await client.containers.container(box).get_archive(place)
                except aiodocker.DockerError as error:
                    if error.status == 404 and "no such container" not in error.message.lower():
                        raise FileNotFoundError(path) from error
                    raise
            data, target = unpacked(place, found)
            if target is None:
                return data or b""
            place = absolute(target)
        raise OSError(f"{path}: too many symbolic links")

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        async with self._asking(box, Phase.RUN, TRANSFER_DEADLINE_S) as client:
            await client.containers.container(box).put_archive("/", packed(path, data))

    async def has_image(self, reference: str) -> bool:
        return await self._images.has(reference)

    async def import_image(self, reference: str, archive: Path) -> None:
        await self._images.load(reference, archive)

    async def host_address(self) -> str:
        """The loopback of a sandbox in the host's network; else the network's gateway."""
        network = (await self._engine.abilities()).network(self._options)
        if network == "host":
            return "127.0.0.1"
        async with self._engine.asking(Phase.CREATE) as client:
            found = await (await client.networks.get(network)).show()
        gateways = [c["Gateway"] for c in found["IPAM"]["Config"] or () if c.get("Gateway")]
        if not gateways:
            raise InputError(f"the network {network} has no gateway to reach this host by")
        return str(gateways[0])

    async def sweep(self) -> int:
        """Remove the containers whose owner, a process of this host, is certainly dead."""
        filters = f'{{"label": ["{owner.MINE}=1"]}}'
        async with self._engine.asking(Phase.DESTROY) as client:
            found = await client._query_json(  # noqa: SLF001  # containers.list hides the labels
                "containers/json", params={"all": "1", "filters": filters}
            )
        swept = 0
        for container in found:
            who = owner.owner_of(container["Labels"])
            ticks = None if who is None else owner.started_ticks(who.pid)
            if owner.is_orphan(who, self._me, ticks):
                with contextlib.suppress(SandboxGone):
                    await self._remove(Handle(container["Id"]))
                swept += 1
        return swept

    async def describe(self) -> dict[str, str]:
        async with self._engine.asking(Phase.CREATE) as client:
            version, info = await client.version(), await client.system.info()
        abilities = await self._engine.abilities()
        limits_disk = "enforced" if abilities.limits_disk else "not enforced"
        return {
            "engine": str(version.get("Version")),
            "api": str(version.get("ApiVersion")),
            "client": f"aiodocker {aiodocker.__version__}",
            "runtime": _runtime_in(info, self._options.runtime),
            "storage": f"{abilities.storage} on {abilities.backing or 'unknown'}",
            "kernel": str(info.get("KernelVersion")),
            "cgroup": f"v{info.get('CgroupVersion') or '1'}, {info.get('CgroupDriver')}",
            "network": abilities.full_network(self._options) or "none",
            "init": self._options.init,
            "disk limit": f"{limits_disk} by {abilities.storage}",
            "swap limit": "enforced" if info.get("SwapLimit") else "not enforced",
        }

    async def close(self) -> None:
        """Let go of the engine; the containers stay."""
        for shells in self._shells.values():
            for shell in shells:
                shell.forget()
        self._shells.clear()
        await self._engine.close()

    async def _make(self, box: Handle, config: Mapping[str, Any], repo: Repo | None) -> None:
        async with self._engine.asking(Phase.CREATE) as client:
            try:
                container = await self._new(client, box, config)
                await container.start()
            except aiodocker.DockerError as error:
                self._refuse(error, config)
                raise
        if repo is not None and not await self._holds(box, str(config["Image"]), repo):
            await self._upload(box, repo)

    async def _new(
        self, client: aiodocker.Docker, box: Handle, config: Mapping[str, Any]
    ) -> DockerContainer:
        """A container that does not run yet."""
        return await client.containers.create(dict(config), name=box)

    def _refuse(self, error: aiodocker.DockerError, config: Mapping[str, Any]) -> None:
        """Raise InputError where the engine says that the request can never be granted."""
        if "no such image" in error.message.lower():
            raise InputError(self._images.absent(str(config["Image"]))) from error
        if "docker-init" in error.message or "container-init" in error.message:
            raise InputError(
                f"{self.name} has no init program: install tini (for podman catatonit), "
                "or use the option init=none"
            ) from error
        if error.status == 400 or missing_user_in(error.message):
            raise InputError(f"{self.name} cannot make this sandbox: {error.message}") from error

    async def _holds(self, box: Handle, image: str, repo: Repo) -> bool:
        """Whether the image has the repository already; looked up once per image."""
        key = (image, repo.path)
        if key not in self._has_repo:
            try:
                await self.read(box, f"{repo.path}/.git/HEAD")
                self._has_repo[key] = True
            except FileNotFoundError:
                self._has_repo[key] = False
        return self._has_repo[key]

    async def _upload(self, box: Handle, repo: Repo) -> None:
        at = absolute(repo.path).lstrip("/")
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch, "repo.tar")
            await asyncio.to_thread(pack, Path(repo.source), at, archive)
            async with self._asking(box, Phase.CREATE, TRANSFER_DEADLINE_S) as client:
                with archive.open("rb") as data:  # noqa: ASYNC230  # aiohttp reads it in a thread
                    await client.containers.container(box).put_archive("/", data)

    async def _remove(self, box: Handle) -> None:
        async with self._engine.asking(Phase.DESTROY) as client:
            container = client.containers.container(box)
            while True:
                try:
                    await container.delete(force=True, v=True)
                except aiodocker.DockerError as error:
                    if error.status != 409 and _ENDING not in error.message:
                        raise
                else:
                    return
                await asyncio.sleep(_AGAIN_S)
                await (
                    container.show()
                )  # somebody else removes it, or it ends: return when that is done

    def _asking(self, box: Handle, phase: Phase, deadline_s: float = 60.0) -> Any:
        self._named(box, phase)
        return self._engine.asking(phase, deadline_s)

    def _named(self, box: Handle, phase: Phase) -> None:
        """Refuse what is no handle of ours before it becomes part of a request's path."""
        if not _HANDLE.fullmatch(box):
            raise SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)


def _runtime_in(info: Mapping[str, Any], chosen: str | None) -> str:
    """Its name and, where the engine was told more, what it is started with."""
    name = chosen or str(info.get("DefaultRuntime"))
    words = (info.get("Runtimes") or {}).get(name, {}).get("runtimeArgs") or ()
    return " ".join((name, *words))
