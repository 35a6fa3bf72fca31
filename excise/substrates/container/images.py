"""Images of an engine: whether they are there, and how they come there without a registry."""

from __future__ import annotations

import re
from pathlib import Path

import aiodocker

from excise.errors import Phase
from excise.substrates.container.config import HOST, Options
from excise.substrates.container.engine import TRANSFER_DEADLINE_S, Engine
from excise.substrates.host_image import host_image


class Images:
    """What one engine has. Nothing is ever pulled unless the option `pull=missing` says so."""

    def __init__(self, engine: Engine, options: Options) -> None:
        self._engine = engine
        self._options = options
        self._host: str | None = None
        self._pulled: set[str] = set()

    async def resolve(self, image: str) -> str:
        """The engine's reference for a spec's image."""
        if image == HOST:
            return await self._of_this_host()
        if self._options.pull == "missing" and image not in self._pulled:
            if not await self.has(image):
                async with self._engine.asking(Phase.CREATE, TRANSFER_DEADLINE_S) as client:
                    await client.images.pull(image)
            self._pulled.add(image)
        return image

    async def has(self, reference: str) -> bool:
        async with self._engine.asking(Phase.CREATE) as client:
            try:
                await client.images.inspect(reference)
            except aiodocker.DockerError as error:
                if error.status == 404:
                    return False
                raise
        return True

    async def load(self, reference: str, archive: Path) -> None:
        """Make an image of a root file system; the engine unpacks while it receives."""
        repository, _, tag = reference.partition(":")
        query = {"fromSrc": "-", "repo": repository, "tag": tag or "latest"}
        async with self._engine.asking(Phase.CREATE, TRANSFER_DEADLINE_S) as client:
            with archive.open("rb") as data:
                answer = await client._do_query(  # noqa: SLF001  # aiodocker has no import of a root file system
                    "images/create",
                    "POST",
                    params=query,
                    data=data,
                    headers={"Content-Type": "application/x-tar"},
                )
                async with answer:
                    said = (await answer.read()).decode("utf-8", "replace")
        made = re.findall(r"sha256:[0-9a-f]{64}", said)
        if '"error"' in said or not made:
            raise self._engine.broken(
                f"the engine did not take {archive}: {said[-300:]}", Phase.CREATE
            )
        if not await self.has(reference):  # podman takes the repository's name but not the tag
            async with self._engine.asking(Phase.CREATE) as client:
                await client.images.tag(made[-1], repository, tag=query["tag"])

    def absent(self, image: str) -> str:
        """What to say of an image that is not there."""
        program = self._options.engine
        return (
            f"{self._engine.substrate} has no image {image} and pulls none by itself: "
            f"{program} pull {image}, or use the option pull=missing"
        )

    async def _of_this_host(self) -> str:
        if self._host is None:
            built = await host_image()
            if not await self.has(built.reference):
                await self.load(built.reference, built.archive)
            self._host = built.reference
        return self._host
