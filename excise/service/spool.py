"""A body of any size, taken to disk as it comes, so that it can be handed on whole and memory stays small."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from excise.service.errors import TooLarge
from excise.types import MIB

IN_MEMORY_BYTES = 2 * MIB


@asynccontextmanager
async def spooled(source: AsyncIterator[bytes], most: int) -> AsyncIterator[Iterator[bytes]]:
    """Everything `source` gives, in pieces of a megabyte; TooLarge beyond `most`. Small ones stay in memory."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as kept:
        size = 0
        async for part in source:
            size += len(part)
            if size > most:
                raise TooLarge(f"more than {most} bytes")
            kept.write(part)
        kept.seek(0)
        yield iter(lambda: kept.read(MIB), b"")
