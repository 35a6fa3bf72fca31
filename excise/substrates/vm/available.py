"""Why guests can or cannot be made here, and the command that would change it."""

from __future__ import annotations

import os
import sys

from excise.agent.binary import agent_binary
from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.vm.accel import at_a_glance, what_is_seen
from excise.substrates.vm.config import Options
from excise.substrates.vm.lines import MEMORY
from excise.substrates.vm.parts import Missing, program, qemu_parts, uml_kernel

_WALLS = ("taskset", "unshare", "setpriv")


async def available(options: Options) -> Availability:
    """Look for every part; nothing is booted."""
    if sys.platform != "linux":
        return Availability(False, "needs Linux", None)
    try:
        agent_binary()
        for name in _WALLS:
            program(name, "util-linux")
        program("mke2fs", "e2fsprogs")
        here = _parts(options)
    except Missing as missing:
        return Availability(False, missing.reason, missing.remedy)
    except InputError as error:
        return Availability(False, str(error), None)
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return Availability(False, f"{MEMORY} is not writable: a guest's memory is there", None)
    return Availability(True, here)


def _parts(options: Options) -> str:
    if options.machine == "uml":
        return f"user-mode Linux at {uml_kernel(options)}: a kernel of its own, no hardware"
    found = qemu_parts(options)
    sight = at_a_glance(*what_is_seen())
    how = f"emulated: {sight.why}" if sight else "accelerated, if a guest boots so"
    return f"{found.program.name}, {how}"
