"""The command line of QEMU, as words; nothing is started here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from excise.substrates.vm.config import Shape
from excise.substrates.vm.lines import descriptor, guest_words

KVM, TCG = "kvm", "tcg"
ADDRESS, GATEWAY, NAMES = "10.0.2.15", "10.0.2.2", "10.0.2.3"
"""Of QEMU's own network: the guest, the host as the guest sees it, and who looks names up."""

COW = "cow"
"""A guest's own disk, in the folder that it is started in."""

MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "failover",
    "net_failover",
    "virtio_net",
)
"""What a guest loads, in this order, of those that its kernel has as modules."""

_ACCELERATED = {KVM: "kvm", TCG: "tcg,thread=multi"}
_PROCESSOR = {KVM: "host", TCG: "max"}
_GUARDED = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True)
class Files:
    """Descriptors that a machine is started with."""

    kernel: int
    initrd: int
    memory: int
    chain: tuple[int, ...]
    """Below the guest's own disk, the lowest first: an image, then what was frozen over it."""

    @property
    def all(self) -> tuple[int, ...]:
        return (self.kernel, self.initrd, self.memory, *self.chain)


def qemu_line(
    program: str,
    shape: Shape,
    files: Files,
    *,
    accel: str,
    port: int,
    monitor: int,
    private: bool = False,
    incoming: bool = False,
) -> list[str]:
    """`private`: what is written to memory is this machine's alone; `incoming`: it waits for the state of another."""
    memory = (
        f"memory-backend-file,id=ram,size={shape.memory_mib}M,mem-path={descriptor(files.memory)}"
    )
    words = [program, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    words += ["-sandbox", _GUARDED, "-accel", _ACCELERATED[accel], "-cpu", _PROCESSOR[accel]]
    words += ["-object", f"{memory},share={'off' if private else 'on'}"]
    words += ["-M", "q35,memory-backend=ram", "-m", f"{shape.memory_mib}M"]
    words += ["-smp", str(shape.processors)]
    words += ["-kernel", descriptor(files.kernel), "-initrd", descriptor(files.initrd)]
    words += ["-append", " ".join(_kernel_words(shape, accel))]
    words += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
    words += ["-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control"]
    words += ["-chardev", f"socket,id=line,fd={port}", "-device", "virtio-serial-pci"]
    words += ["-device", "virtserialport,chardev=line,name=agent,nr=1"]
    words += _disks(files.chain)
    if shape.network:
        words += ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="]
    return [*words, "-incoming", "defer"] if incoming else words


def _kernel_words(shape: Shape, accel: str) -> Sequence[str]:
    words = ["console=ttyS0", "quiet", "panic=-1", "rdinit=/init"]
    if accel == TCG:
        words.append("mitigations=off")  # there is no speculation to guard against
    words += guest_words(shape, port="/dev/vport0p1", root="/dev/vda")
    if shape.network:
        words += [f"excise_address={ADDRESS}", f"excise_gateway={GATEWAY}"]
    return words


def _disks(chain: Sequence[int]) -> list[str]:
    """The guest's own over what is below; the lowest is raw, all others are QEMU's copy-on-write files.

    Nobody else can write to any of them, so none is locked.
    """
    words: list[str] = []
    for level, number in enumerate(chain):
        words += [
            "-blockdev",
            f"file,locking=off,node-name=f{level},filename={descriptor(number)},read-only=on",
        ]
        kind = f"qcow2,backing=n{level - 1}" if level else "raw"
        words += ["-blockdev", f"{kind},node-name=n{level},file=f{level},read-only=on"]
    words += ["-blockdev", f"file,locking=off,node-name=own,filename={COW}"]
    words += ["-blockdev", f"qcow2,node-name=disk,file=own,backing=n{len(chain) - 1}"]
    return [*words, "-device", "virtio-blk-pci,drive=disk"]
