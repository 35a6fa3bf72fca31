"""Containers that a tool makes and acts in. Images, networks, removal and sweeping are those of `docker`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from excise.errors import InputError, Phase, SubstrateError
from excise.substrates.adapters.acting import act
from excise.substrates.adapters.child import Child, ToolFailed
from excise.substrates.container.config import WORKSPACE, Options
from excise.substrates.container.files import absolute
from excise.substrates.container.substrate import Container
from excise.substrates.script import check
from excise.types import Action, Handle, Observation, Repo


class AdaptedContainer(Container):
    """`docker@TOOL`."""

    def __init__(self, options: Options, tool: str, python: str) -> None:
        super().__init__(options)
        self.name = f"docker@{tool}"
        self._tool = tool
        host = {} if options.host is None else {"DOCKER_HOST": options.host}
        self._child = Child(self.name, python, host)

    async def run(self, box: Handle, action: Action) -> Observation:
        check(action.argv)
        self._named(box, Phase.RUN)
        return await act(self._child, self.name, box, action, absolute(action.cwd or "."))

    async def destroy(self, box: Handle) -> None:
        self._named(box, Phase.DESTROY)
        try:
            await self._child.ask("close", Phase.DESTROY, box=box)
        except ToolFailed as error:
            raise SubstrateError(str(error), substrate=self.name, phase=Phase.DESTROY) from error
        finally:
            await super().destroy(box)

    async def describe(self) -> dict[str, str]:
        return {**await super().describe(), "adapter": self._tool}

    async def close(self) -> None:
        await self._child.close()
        await super().close()

    async def _make(self, box: Handle, config: Mapping[str, Any], repo: Repo | None) -> None:
        network = None
        if self._tool == "swe-rex" and config["HostConfig"]["NetworkMode"] == "none":
            network = await self._any_bridge()
        asked = container_of(box, config, network)
        try:
            await self._child.ask("open", Phase.CREATE, box=box, tool=self.name, container=asked)
        except ToolFailed as error:
            if "No such image" in str(error) or "Unable to find image" in str(error):
                raise InputError(self._images.absent(str(config["Image"]))) from error
            raise SubstrateError(str(error), substrate=self.name, phase=Phase.CREATE) from error
        if repo is not None and not await self._holds(box, str(config["Image"]), repo):
            await self._upload(box, repo)

    async def _any_bridge(self) -> str:
        """SWE-ReX speaks to its server over a published port, which a container without a network has none of."""
        drivers = (await self._engine.abilities()).networks
        bridges = sorted(name for name, driver in drivers.items() if driver == "bridge")
        if not bridges:
            raise InputError(
                f"{self.name} needs a bridge to publish a port: docker network create NAME"
            )
        return "bridge" if "bridge" in bridges else bridges[0]


def container_of(box: str, config: Mapping[str, Any], network: str | None) -> dict[str, Any]:
    """The container that the engine would have been asked for, as the tools take it: as flags and as keywords."""
    host = config["HostConfig"]
    env = dict(entry.split("=", 1) for entry in config["Env"])
    given = {name: host[key] for key, (name, _) in LIMITS.items() if key in host}
    flags = [f"{flag}={_shown(key, host[key])}" for key, (_, flag) in LIMITS.items() if key in host]
    flags += [f"--label={key}={value}" for key, value in config["Labels"].items()]
    flags += [f"--env={key}={value}" for key, value in env.items()]
    flags += [f"--network={network or host['NetworkMode']}", f"--workdir={WORKSPACE}", "--init"]
    return {
        "name": box, "image": config["Image"], "labels": config["Labels"], "env": env, "workspace": WORKSPACE,
        "network": network or host["NetworkMode"], "limits": given, "flags": flags,
    }  # fmt: skip


LIMITS = {
    "NanoCpus": ("nano_cpus", "--cpus"),
    "Memory": ("mem_limit", "--memory"),
    "MemorySwap": ("memswap_limit", "--memory-swap"),
    "PidsLimit": ("pids_limit", "--pids-limit"),
    "CpusetCpus": ("cpuset_cpus", "--cpuset-cpus"),
}


def _shown(key: str, value: object) -> str:
    return f"{int(str(value)) / 1e9:g}" if key == "NanoCpus" else str(value)
