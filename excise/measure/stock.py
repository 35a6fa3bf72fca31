"""Stock a substrate for a workload: the same programs, interpreter and repository as the bare process has.

Where a substrate takes images, one is made of this host's own programs and the task's environment, so that
a comparison is one of substrates and not of two builds of Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from excise.substrates.base import ImportsImages, ReachesHost, Substrate, Warms
from excise.tasks.descriptor import Prepared
from excise.types import Egress, Limits, Repo, Spec
from excise.workloads.base import Site, Workload

REPO = "repo"
LOOPBACK = "127.0.0.1"


class ServesGit(Protocol):
    """Serves prepared repositories; see `excise.tasks.serve`."""

    def url(self, name: str, *, host: str | None = None) -> str: ...


@dataclass(frozen=True, slots=True)
class Supplies:
    """What all workloads of a study are stocked from."""

    prepared: Mapping[str, Prepared]
    git: Mapping[str, ServesGit]
    """By the address at which sandboxes reach it."""
    images: Path
    """Where built image archives are kept."""
    limits: Limits


async def stock(substrate: Substrate, workload: Workload, supplies: Supplies) -> tuple[Spec, Site]:
    """What to create for this workload on this substrate, and where things are in there."""
    prepared = supplies.prepared[workload.task] if workload.task is not None else None
    repo = None
    if prepared is not None and workload.preloaded:
        repo = Repo(source=str(prepared.checkout), commit=prepared.commit, path=REPO)
    image, in_image = "host", False
    if isinstance(substrate, ImportsImages):
        held = prepared or next(iter(supplies.prepared.values()), None)
        image, in_image = await _import(substrate, held, repo, supplies.images), True
    warm = isinstance(substrate, Warms) and substrate.warm and prepared is not None
    spec = Spec(
        image=image,
        repo=None if in_image else repo,
        limits=supplies.limits,
        egress=workload.egress,
        labels={"excise.workload": workload.name},
        warm=prepared.python if prepared is not None and warm else None,
    )
    site = Site(
        python="python3" if prepared is None else prepared.python,
        git_url=await _git_url(substrate, workload, supplies),
        repo=repo,
    )
    return spec, site


async def _git_url(substrate: Substrate, workload: Workload, supplies: Supplies) -> str:
    if workload.egress is Egress.NONE or workload.task is None:
        return ""
    host = await address_of_host(substrate)
    return supplies.git[host].url(workload.task, host=host)


async def address_of_host(substrate: Substrate) -> str:
    """Where a sandbox of this substrate finds the harness's git server."""
    return await substrate.host_address() if isinstance(substrate, ReachesHost) else LOOPBACK


async def _import(
    substrate: ImportsImages, prepared: Prepared | None, repo: Repo | None, images: Path
) -> str:
    from excise.layers.host import build_rootfs

    built = await asyncio.to_thread(
        build_rootfs,
        paths=() if prepared is None else (prepared.venv,),
        workspace={} if repo is None else {repo.path: Path(repo.source)},
        out=images,
    )
    if not await substrate.has_image(built.reference):
        await substrate.import_image(built.reference, built.archive)
    return built.reference
