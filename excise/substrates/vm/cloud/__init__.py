"""Virtual machines of a cloud, reached over ssh: the paper's cloud archetype, whoever's cloud it is.

A driver creates, looks at, deletes and lists machines; everything between its answer and the first command is the same for
all: one table of steps, each stamped, and one kept ssh connection that brings the agent along.

Covered: commands as with any agent; machines of killed owners are found by their labels and deleted. Not covered: a
machine has the size of its type and the network that its cloud gives it, whatever limits and egress a spec asks for
(`describe` says so); root there is whoever the ssh user may become.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from excise.substrates.base import Availability
from excise.substrates.vm.cloud.config import Options

if TYPE_CHECKING:
    from excise.substrates.vm.cloud.substrate import CloudMachines

__all__ = ["availability", "open_substrate"]


def open_substrate(**options: str) -> CloudMachines:
    """`provider=ec2|hetzner|gcp`, `image=`, `type=`, `region=`, `user=`, `key=FILE`, `key_name=`, `endpoint=`, `boot_s=`."""
    from excise.substrates.vm.cloud.substrate import CloudMachines

    chosen = Options.of(options)
    return CloudMachines(chosen, chosen.control())


async def availability(**options: str) -> Availability:
    """Whether there is a way to ask; nobody is asked, because that may cost money."""
    chosen = Options.of(options)
    if shutil.which("ssh") is None:
        return Availability(False, "there is no ssh", "apt-get install openssh-client")
    return chosen.credentials()
