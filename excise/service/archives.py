"""Archives that clients upload for the COPY steps of their templates: kept by digest, bounded, oldest out first."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from excise.errors import InputError
from excise.service.errors import TooLarge
from excise.types import GIB, MIB

ONE_BYTES = 512 * MIB
ALL_BYTES = 8 * GIB
"""Of one owner."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def folder_of(archives: Path, owner: str | None) -> Path:
    """Where an owner's are: nobody's archive is ever taken for that of somebody else."""
    return archives / hashlib.sha256((owner or "").encode()).hexdigest()[:32]


async def keep_archive(
    folder: Path, digest: str, parts: AsyncIterator[bytes], *, proven: bool = True
) -> Path:
    """Keep what comes under that name. `proven`: the name must be its SHA-256; some protocols hash otherwise."""
    if not _DIGEST.fullmatch(digest):
        raise InputError("an archive is named by the 64 hex digits of its SHA-256")
    os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103  # one call, and no thread for it
    coming = folder / f".{secrets.token_hex(8)}"
    found, size = hashlib.sha256(), 0
    try:
        with coming.open("wb") as out:
            async for part in parts:
                size += len(part)
                if size > ONE_BYTES:
                    raise TooLarge(f"an archive of more than {ONE_BYTES} bytes")
                found.update(part)
                out.write(part)
        if proven and found.hexdigest() != digest:
            raise InputError(f"the archive's SHA-256 is {found.hexdigest()}: name it by that")
        coming.replace(folder / digest)
    finally:
        coming.unlink(missing_ok=True)
    make_room(folder, ALL_BYTES)
    return folder / digest


def make_room(folder: Path, most: int) -> None:
    """Remove the archives that were longest unused, until the rest fits."""
    kept = [(each.stat(), each) for each in folder.iterdir() if _DIGEST.fullmatch(each.name)]
    kept.sort(key=lambda pair: max(pair[0].st_atime, pair[0].st_mtime))
    size = sum(stat.st_size for stat, _ in kept)
    for stat, path in kept:
        if size <= most:
            break
        path.unlink(missing_ok=True)
        size -= stat.st_size
