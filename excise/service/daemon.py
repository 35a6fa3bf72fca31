"""The service as a process: what it finds when it starts, what it looks after, and how it ends.

One process holds a state folder. What a killed one left is swept before anything is served, and its sandboxes are
remembered as lost, so that their clients get a truthful answer. SIGTERM drains: nothing new is made, what is under
way goes on until it ends or the patience does. A second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import resource
import signal
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from excise.errors import ExciseError, InputError, SubstrateError
from excise.service.all_doors import all_doors
from excise.service.cloud import Cloud
from excise.service.doors import Desk
from excise.service.keys import Ring
from excise.service.log import LOGGER
from excise.service.policy import Policy
from excise.service.rollout_file import RolloutFile
from excise.service.sandbox import Ended
from excise.service.serve import Address, serving
from excise.service.state import State
from excise.service.templates import Template
from excise.substrates.base import Substrate, Sweeps

LOCK = "lock"
SWEEP_EVERY_S = 60.0
KEYS_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """All that can be chosen when a service is started."""

    folder: Path
    address: Address = field(default_factory=Address)
    policy: Policy = field(default_factory=Policy)
    templates: Sequence[Template] = ()
    tls: ssl.SSLContext | None = None
    domain: str | None = None
    tax: bool = True
    drain_s: float = 30.0


def state_folder() -> Path:
    """`$EXCISE_SERVICE`, else `/var/lib/excise/service` for root, else below `$XDG_DATA_HOME`."""
    if chosen := os.environ.get("EXCISE_SERVICE"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/excise/service")
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "excise" / "service"


async def run(substrate: Substrate, plan: Plan, said: Callable[[Desk], None]) -> None:
    """Serve until a signal comes; `said` is called once it listens."""
    stop = _signals()
    _allow_files()
    async with started(substrate, plan) as desk:
        gc.freeze()  # what was imported stays: a full collection that walks it answers nobody meanwhile
        said(desk)
        LOGGER.info("serving", extra={"url": desk.url, "substrate": substrate.name})
        await stop.get()
        desk.cloud.draining = True
        living = len(desk.cloud.census)
        LOGGER.info("draining", extra={"sandboxes": living, "patience_s": plan.drain_s})
        await drained(desk.cloud, plan.drain_s, stop)
    LOGGER.info("ended")


@asynccontextmanager
async def started(substrate: Substrate, plan: Plan) -> AsyncIterator[Desk]:
    """A service on its state folder, while the block runs."""
    with alone(plan.folder):
        state, rollouts = State(plan.folder), RolloutFile(plan.folder)
        try:
            cloud = Cloud(substrate, plan.folder, policy=plan.policy, journal=state)
            cloud.taxes.on = plan.tax
            cloud.taxes.keep = lambda line: state.later(lambda: rollouts.append(line))
            bury_the_lost(cloud, state)
            await sweep(substrate)
            await restore(cloud, state, plan.templates)
            version, ring = state.version(), Ring(state.keys())
            async with serving(
                cloud,
                all_doors(),
                ring,
                address=plan.address,
                tls=plan.tls,
                domain=plan.domain,
            ) as desk:
                behind = [
                    asyncio.create_task(_follow_keys(desk, state, version)),
                    asyncio.create_task(_keep_clean(substrate, state)),
                ]
                try:
                    yield desk
                finally:
                    for task in behind:
                        task.cancel()
                    await asyncio.gather(*behind, return_exceptions=True)
        finally:
            state.close()
            rollouts.close()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other service uses this folder meanwhile."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another service uses {folder}: give this one --state FOLDER"
            ) from None
        yield
    finally:
        os.close(lock)


def bury_the_lost(cloud: Cloud, state: State) -> int:
    """What a killed service had is no more, and is remembered as lost; so is why the others ended."""
    for id_, owner, why in state.graves():
        cloud.census.bury(id_, owner, why)
    lost = state.unended()
    for id_, owner, _ in lost:
        cloud.census.bury(id_, owner, str(Ended.LOST))
        state.ended(id_, str(Ended.LOST), time.time())
    if lost:
        LOGGER.warning("found lost sandboxes", extra={"sandboxes": len(lost)})
    return len(lost)


async def sweep(substrate: Substrate) -> int:
    """Remove what killed owners left on this host."""
    if not isinstance(substrate, Sweeps):
        return 0
    swept = await substrate.sweep()
    if swept:
        LOGGER.warning("swept", extra={"sandboxes": swept})
    return swept


async def restore(cloud: Cloud, state: State, ours: Sequence[Template]) -> None:
    """Templates as they were; those with steps are built again when they are first used."""
    for template in ours:
        await cloud.templates.put(template)
    for body in state.templates():
        with contextlib.suppress(ExciseError):  # one that this version does not understand
            await cloud.templates.put_again(body)
    cloud.templates.journal = state


async def drained(cloud: Cloud, patience_s: float, hurry: asyncio.Queue[int]) -> None:
    """Return once no sandbox lives, the patience is over, or somebody is in a hurry."""
    empty, hurried = (
        asyncio.create_task(cloud.census.empty.wait()),
        asyncio.create_task(hurry.get()),
    )
    waiting: set[asyncio.Task[bool] | asyncio.Task[int]] = {empty, hurried}
    await asyncio.wait(waiting, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def _allow_files() -> None:
    """As many open files as this process may have at all: each sandbox and each client takes some."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _signals() -> asyncio.Queue[int]:
    loop, came = asyncio.get_running_loop(), asyncio.Queue[int]()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, came.put_nowait, number)
    return came


async def _follow_keys(desk: Desk, state: State, version: int) -> None:
    """A key that is added or revoked while the service runs counts within a second."""
    while True:
        await asyncio.sleep(KEYS_EVERY_S)
        now = state.version()
        if now != version:
            version = now
            desk.ring = Ring(state.keys())


async def _keep_clean(substrate: Substrate, state: State) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        state.trim()
        try:
            await sweep(substrate)
        except SubstrateError as error:
            LOGGER.error("cannot sweep", extra={"error": str(error)})
