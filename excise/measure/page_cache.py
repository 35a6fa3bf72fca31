"""The host's page cache: dropped before a trial of a cold cell, which only an exclusive machine can bear."""

from __future__ import annotations

import os
from pathlib import Path

from excise.errors import InputError

DROP = Path("/proc/sys/vm/drop_caches")
PAGES_AND_NAMES = b"3\n"


def refuse_unless_droppable(at: Path = DROP) -> None:
    """Found out by opening and not by permissions, which say nothing of a read-only /proc."""
    try:
        os.close(os.open(at, os.O_WRONLY))
    except OSError as error:
        raise InputError(
            f"cold-page needs to drop the host's page cache, and {at} cannot be written "
            f"({error.strerror}): run it as root on a machine of its own, or leave it out"
        ) from None


def drop(at: Path = DROP) -> None:
    """Write out what is dirty, then forget every page and name that is not in use."""
    os.sync()
    descriptor = os.open(at, os.O_WRONLY)
    try:
        os.write(descriptor, PAGES_AND_NAMES)
    finally:
        os.close(descriptor)
