"""Images of a cluster: nodes pull them, or somebody loads them into the nodes; an API server takes none."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import platform
import shlex
import tarfile
import tempfile
from pathlib import Path

from excise.errors import InputError, Phase, SubstrateError
from excise.substrates.container.config import HOST
from excise.substrates.host_image import host_image
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.options import Options

LOAD = "EXCISE_KUBERNETES_LOAD"
"""A command that is given an archive as `docker save` writes it, such as `kind load image-archive`."""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class Images:
    """What the nodes have, as far as anybody can know it."""

    def __init__(self, cluster: Cluster, options: Options) -> None:
        self._cluster = cluster
        self._load = options.load or os.environ.get(LOAD)
        self._there: set[str] = set()
        self._host: str | None = None
        self._loading = asyncio.Lock()

    async def resolve(self, image: str) -> str:
        """The cluster's reference for a spec's image."""
        if image != HOST:
            return image
        async with self._loading:
            if self._host is None:
                self._host = await self._of_this_host()
        return self._host

    async def has(self, reference: str) -> bool:
        """Whether it was loaded before. Nodes tell the images they have, but not all, and not at once."""
        if reference not in self._there:
            async with self._cluster.asking(Phase.CREATE) as cluster:
                nodes = await cluster.call("GET", "/api/v1/nodes")
            told = [
                {
                    name
                    for image in node["status"].get("images", ())
                    for name in image.get("names") or ()
                }
                for node in nodes["items"]
            ]
            if told and all(any(_same(name, reference) for name in names) for names in told):
                self._there.add(reference)
        return reference in self._there

    async def load(self, reference: str, archive: Path) -> None:
        """Make an image of a root file system and have it loaded."""
        if self._load is None:
            raise InputError(
                f"{self._cluster.substrate} takes images from registries alone: name one that the cluster "
                f"can pull, or set {LOAD} to a command that loads an archive into the nodes"
            )
        with tempfile.TemporaryDirectory() as scratch:
            packed = Path(scratch, "image.tar")
            await asyncio.to_thread(as_saved, reference, archive, packed)
            code, said = await _run([*shlex.split(self._load), str(packed)])
        if code != 0:
            raise SubstrateError(
                f"{self._load} ended with {code}: {said}",
                substrate=self._cluster.substrate,
                phase=Phase.CREATE,
            )
        self._there.add(reference)

    async def _of_this_host(self) -> str:
        built = await host_image()
        if not await self.has(built.reference):
            await self.load(built.reference, built.archive)
        return built.reference


async def _run(argv: list[str]) -> tuple[int, str]:
    """Its code and the end of what it said."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise InputError(f"images cannot be loaded: {error}; see {LOAD}") from error
    said, _ = await process.communicate()
    return process.returncode or 0, said[-300:].decode("utf-8", "replace").strip()


def as_saved(reference: str, rootfs: Path, into: Path) -> None:
    """A root file system as `docker save` would write an image of that one layer."""
    with rootfs.open("rb") as data:
        layer = hashlib.file_digest(data, "sha256").hexdigest()
    machine = platform.machine()
    config = {
        "architecture": _MACHINES.get(machine, machine),
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    with tarfile.open(into, "w") as tar:
        for name, said in (("config.json", config), ("manifest.json", manifest)):
            text = json.dumps(said).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        tar.add(rootfs, "layer.tar")


def _same(name: str, reference: str) -> bool:
    return name == reference or name.endswith(f"/{reference}")
