"""The image that `Spec` names by default, as an archive for whoever takes images: made of this host's own programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from excise.errors import InputError

if TYPE_CHECKING:
    from excise.layers.host import HostImage


async def host_image() -> HostImage:
    """Built only if it is not there yet."""
    from excise.layers.host import build_rootfs
    from excise.tasks.cache import root

    try:
        return await asyncio.to_thread(build_rootfs, out=root() / "images")
    except OSError as error:
        raise InputError(f"cannot build an image of this host: {error}") from error
