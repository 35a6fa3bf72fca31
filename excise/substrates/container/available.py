"""Why an engine can or cannot be used here, and the command that would change it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import aiodocker

from excise.substrates.base import Availability
from excise.substrates.container import remedies
from excise.substrates.container.config import Options
from excise.substrates.container.engine import address_of

OLDEST_API = (1, 41)
"""Docker 20.10; older engines were not tried."""

ANSWER_DEADLINE_S = 20.0
USUAL_SOCKET = "unix:///var/run/docker.sock"


async def engine_availability(options: Options) -> Availability:
    """Ask the engine for its version; look around if it does not answer."""
    try:
        client = aiodocker.Docker(url=address_of(options))
    except AssertionError:
        return _without_engine(options, USUAL_SOCKET)
    except (ValueError, aiodocker.DockerError) as error:
        return Availability(False, f"not an engine's address: {error}", remedies.NAME)
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            version = await client._query_json("version", versioned_api=False)  # noqa: SLF001  # `version()` settles the API version first
            runtimes = (await client.system.info()).get("Runtimes") or {}
    except TimeoutError:
        again = remedies.SERVE_PODMAN if options.engine == "podman" else remedies.restart()
        return Availability(False, "the engine does not answer", again)
    except (aiodocker.DockerError, OSError) as error:
        return _without_engine(options, _address(options), error)
    finally:
        await client.close()
    return _judged(version, runtimes, options)


def _judged(
    version: dict[str, object], runtimes: dict[str, object], options: Options
) -> Availability:
    about = f"engine {version.get('Version')}, API {version.get('ApiVersion')}"
    if options.engine == "podman" and "odman" not in str(version.get("Components")):
        return Availability(False, f"{about} is not podman's", remedies.SERVE_PODMAN)
    if _numbers(str(version.get("ApiVersion"))) < OLDEST_API:
        oldest = ".".join(map(str, OLDEST_API))
        return Availability(False, f"{about} is older than API {oldest}", remedies.UPDATE)
    if options.runtime is not None and options.runtime not in runtimes:
        known = ", ".join(sorted(runtimes))
        return Availability(
            False,
            f"the engine has no runtime {options.runtime}; it has: {known}",
            remedies.runtime(options.runtime),
        )
    return Availability(True, about)


def _without_engine(options: Options, address: str, error: Exception | None = None) -> Availability:
    socket = Path(address.removeprefix("unix://"))
    if not address.startswith("unix://"):
        return Availability(False, f"no engine answers at {address}: {error}", remedies.NAME)
    if socket.exists() and not os.access(socket, os.R_OK | os.W_OK):
        return Availability(False, f"no permission to use {socket}", remedies.JOIN)
    if options.engine == "podman":
        if shutil.which("podman") is None:
            return Availability(False, "podman is not installed", remedies.INSTALL_PODMAN)
        why = f"podman's API does not listen at {socket}"
        return Availability(False, why, remedies.SERVE_PODMAN)
    if shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        return Availability(
            False, f"Docker is installed but not running at {socket}", remedies.start()
        )
    return Availability(False, "Docker is not installed", remedies.install())


def _address(options: Options) -> str:
    return address_of(options) or os.environ.get("DOCKER_HOST") or USUAL_SOCKET


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)) or (0,)
