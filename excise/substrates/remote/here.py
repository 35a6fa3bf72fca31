"""A service on this very machine: it finds what is put into this machine's layer store, and its jails reach this host."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from excise.errors import InputError, SandboxGone
from excise.substrates.remote.substrate import Remote
from excise.types import Handle, Spec


class Here(Remote):
    """`service:on=loopback`, which a study can stock like any other substrate. Cores are the service's to choose."""

    async def create(self, spec: Spec) -> Handle:
        return await super().create(replace(spec, limits=replace(spec.limits, cpuset=None)))

    async def has_image(self, reference: str) -> bool:
        """Found out by making one."""
        try:
            box = await self.create(Spec(image=reference))
        except (InputError, SandboxGone):
            return False
        await self.destroy(box)
        return True

    async def import_image(self, reference: str, archive: Path) -> None:
        """Into this machine's layer store, which jails that are served here look into."""
        from excise.jail.ground import import_archive
        from excise.layers.store import Store

        await asyncio.to_thread(import_archive, Store(), reference, archive)
        if not await self.has_image(reference):
            raise InputError(
                f"the service at {self.http.target.url} does not find {reference} in this machine's layer store: "
                "serve jails, as the same user"
            )

    async def host_address(self) -> str:
        from excise.jail.route import host_address

        return host_address()

    async def describe(self) -> dict[str, str]:
        return {**await super().describe(), "deployment": "self-hosted, loopback"}
