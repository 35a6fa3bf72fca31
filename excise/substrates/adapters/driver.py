"""Runs in the interpreter in which the tools are installed, and imports nothing of ours.

Each sandbox is one of a tool's own classes, used as its documentation has it. A JSON object per line comes in, and
one goes out for each, under its number: `open`, `run`, `close`, `ping`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import traceback
from abc import ABC, abstractmethod
from typing import Any


class Tool(ABC):
    """One sandbox of a tool."""

    @abstractmethod
    async def open(self, asked: dict[str, Any]) -> None: ...
    @abstractmethod
    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]: ...

    @abstractmethod
    async def close(self) -> None:
        """What the tool does when its user is done. Containers are removed by whoever asked for them."""


class Sdk(Tool):
    """docker, the official SDK: `containers.run`, `exec_run`. It knows no time limit."""

    async def open(self, asked: dict[str, Any]) -> None:
        await asyncio.to_thread(self._open, asked["container"])

    def _open(self, given: dict[str, Any]) -> None:
        import docker

        self._client = docker.from_env()
        self._container = self._client.containers.run(
            given["image"], ["sleep", "infinity"], name=given["name"], labels=given["labels"],
            environment=given["env"], working_dir=given["workspace"], network_mode=given["network"],
            detach=True, init=True, **given["limits"],
        )  # fmt: skip

    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]:
        del timeout
        argv = ["bash", "-c", command]
        code, output = await asyncio.to_thread(self._container.exec_run, argv, workdir=cwd)
        return {"code": code, "output": output}

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)


class MiniDocker(Tool):
    """mini-swe-agent's DockerEnvironment: the command line's `docker run` and `docker exec`."""

    async def open(self, asked: dict[str, Any]) -> None:
        from minisweagent.environments.docker import DockerEnvironment

        given = asked["container"]
        self._environment = await asyncio.to_thread(
            DockerEnvironment, image=given["image"], cwd=given["workspace"],
            run_args=[*given["flags"], "--name", given["name"]], interpreter=["bash", "-c"],
        )  # fmt: skip

    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]:
        return await _by_mini(self._environment, command, cwd, timeout)

    async def close(self) -> None:
        self._environment.container_id = (
            None  # else it has it stopped in the background, which takes ten seconds
        )


class MiniBubblewrap(Tool):
    """mini-swe-agent's BubblewrapEnvironment, which sees the whole host as the tasks need it to."""

    async def open(self, asked: dict[str, Any]) -> None:
        from minisweagent.environments.extra.bubblewrap import BubblewrapEnvironment

        root = asked["directory"]["root"]
        self._environment = BubblewrapEnvironment(
            cwd=asked["directory"]["work"], env=asked["directory"]["env"],
            wrapper_args=["--unshare-user-try", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
                          "--new-session", "--bind", root, root],
        )  # fmt: skip

    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]:
        return await _by_mini(self._environment, command, cwd, timeout)

    async def close(self) -> None:
        self._environment.cleanup()


class RexLocal(Tool):
    """SWE-ReX's local runtime: a process per command."""

    async def open(self, asked: dict[str, Any]) -> None:
        from swerex.runtime.local import LocalRuntime

        self._env = asked["directory"]["env"]
        self._runtime = LocalRuntime()

    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]:
        return await _by_rex(self._runtime, command, cwd, timeout, self._env)

    async def close(self) -> None:
        await self._runtime.close()


class RexDocker(Tool):
    """SWE-ReX's docker deployment: its server in the container, HTTP to a published port."""

    async def open(self, asked: dict[str, Any]) -> None:
        from swerex.deployment.docker import DockerDeployment

        given = asked["container"]
        self._deployment = DockerDeployment(
            image=given["image"], docker_args=given["flags"], pull="never", startup_timeout=60
        )
        self._deployment._get_container_name = lambda: given["name"]  # noqa: SLF001  # it takes no name
        await self._deployment.start()

    async def run(self, command: str, cwd: str, timeout: float | None) -> dict[str, Any]:
        return await _by_rex(self._deployment.runtime, command, cwd, timeout, None)

    async def close(self) -> None:
        await self._deployment.stop()


async def _by_mini(
    environment: Any, command: str, cwd: str, timeout: float | None
) -> dict[str, Any]:
    """It takes whole seconds, and its default where there are none."""
    whole = 10**6 if timeout is None else max(1, round(timeout))
    found = await asyncio.to_thread(environment.execute, {"command": command}, cwd, timeout=whole)
    late = found.get("extra", {}).get("exception_type") == "TimeoutExpired"
    if found["returncode"] == -1 and not late:
        raise RuntimeError(found["exception_info"])
    return {"code": found["returncode"], "output": found["output"].encode(), "timed_out": late}


async def _by_rex(
    runtime: Any, command: str, cwd: str, timeout: float | None, env: dict[str, str] | None
) -> dict[str, Any]:
    from swerex.exceptions import CommandTimeoutError
    from swerex.runtime.abstract import Command

    asked = Command(
        command=["bash", "-c", command],
        cwd=cwd,
        timeout=timeout,
        env=env,
        merge_output_streams=True,
    )
    try:
        found = await runtime.execute(asked)
    except CommandTimeoutError:
        return {"code": 137, "output": b"", "timed_out": True}
    return {"code": found.exit_code, "output": found.stdout.encode()}


TOOLS: dict[str, type[Tool]] = {
    "docker@sdk": Sdk,
    "docker@swe-rex": RexDocker,
    "docker@mini-swe-agent": MiniDocker,
    "bwrap@mini-swe-agent": MiniBubblewrap,
    "local@swe-rex": RexLocal,
}


class Driver:
    """Answers requests as they are done, in whatever order that is."""

    def __init__(self, writer: Any) -> None:
        self._tools: dict[str, Tool] = {}
        self._writer = writer

    async def answer(self, asked: dict[str, Any]) -> None:
        try:
            said = await self._do(asked)
        except Exception as error:  # noqa: BLE001  # whatever a tool raises is for the caller to judge
            line = "".join(traceback.format_exception_only(error)).strip()
            said = {"error": line}
        self._writer.write(json.dumps({"id": asked["id"], **said}).encode() + b"\n")
        self._writer.flush()

    async def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["do"]:
            case "open":
                tool = TOOLS[asked["tool"]]()
                await tool.open(asked)
                self._tools[asked["box"]] = tool
            case "run":
                tool = self._tools[asked["box"]]
                found = await tool.run(asked["command"], asked["cwd"], asked["timeout"])
                return {**found, "output": base64.b64encode(found["output"] or b"").decode()}
            case "close":
                closing = self._tools.pop(asked["box"], None)
                if closing is not None:
                    await closing.close()
        return {}


async def main() -> None:
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # tools print what they like
    driver = Driver(out)
    under_way = set()
    while line := await reader.readline():
        task = asyncio.create_task(driver.answer(json.loads(line)))
        under_way.add(task)
        task.add_done_callback(under_way.discard)


if __name__ == "__main__":
    asyncio.run(main())
