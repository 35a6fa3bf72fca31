"""The bare process: what the same command costs with nothing around it. The *work* that all tax is counted against.

A sandbox is a fresh directory with `work`, `home` and `tmp` in it, and a clean environment.

Covered: files of its own below its own directories; everything it started is dead after a time-out, a
cancellation and `destroy` (see `proctree` for what escapes); leftovers of killed owners are swept.
Not covered, on purpose: it isolates nothing. Commands run as you, see your files, other sandboxes and the
network; of the limits only `cpuset` is honoured. Never run code with it that you would not run yourself.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.local.directory import PATH
from excise.substrates.local.substrate import Local

__all__ = ["Local", "availability", "open_substrate"]


def open_substrate(**options: str) -> Local:
    """`state=DIR`: where the sandboxes' directories are made."""
    state = options.pop("state", None)
    if options:
        raise InputError(f"local has no option {', '.join(sorted(options))}; it has: state")
    return Local(None if state is None else Path(state))


async def availability(**options: str) -> Availability:
    """Usable on any Linux with pidfds."""
    open_substrate(**options)
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return Availability(False, "needs Linux 5.3 or later", None)
    if shutil.which("bash", path=PATH) is None:
        return Availability(False, "bash is not installed", "apt-get install bash")
    return Availability(True, "runs commands as plain processes: no isolation at all")
