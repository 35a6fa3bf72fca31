"""Virtual machines: a kernel of its own for every sandbox, in shapes that are honest about what they are.

`vm` is QEMU: a machine of its own, accelerated where a guest really boots so, else emulated, which its records say.
`vm+fork` makes its guests of one that has booted. `vm-uml` is user-mode Linux: a whole kernel as an ordinary process
of an unprivileged user, without help of the hardware, near native in computing. `vm-cloud` has a package of its own.

A guest is the kernel, our agent as its first process, and an ext4 disk made of the spec's image, of which every
sandbox has a copy-on-write of its own. Actions go over one kept connection, a serial line of the guest, to the agent.
Covered: memory, processors, disk and processes are the guest's own and bounded; commands are timed inside; what
killed owners left is swept. Not covered: user-mode Linux is no hardware isolation, and its guests have no network;
egress by a list of targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from excise.substrates.base import Availability
from excise.substrates.vm.config import Options

if TYPE_CHECKING:
    from excise.substrates.vm.guests import Guests

__all__ = ["availability", "open_substrate"]


def open_substrate(**options: str) -> Guests:
    """`machine=qemu|uml`, `accel=auto|kvm|tcg`, `start=boot|fork`, `boot_s=SECONDS`, `parts=DIR`: where kernels are."""
    chosen = Options.of(options)
    if chosen.machine == "uml":
        from excise.substrates.vm.uml import UserModeLinux

        return UserModeLinux(chosen)
    from excise.substrates.vm.qemu import Qemu

    return Qemu(chosen)


async def availability(**options: str) -> Availability:
    """Whether all the parts of a guest are here; if not, what is missing and what to do."""
    chosen = Options.of(options)
    from excise.substrates.vm.available import available

    return await available(chosen)
