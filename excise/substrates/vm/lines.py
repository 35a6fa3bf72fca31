"""The command lines of machines, as words; nothing is started here."""

from __future__ import annotations

from collections.abc import Sequence

from excise.substrates.vm.config import Shape

NOBODY = 65534
NOWHERE = "/nonexistent"
MEMORY = "/dev/shm"  # noqa: S108  # where files are memory: what a guest has of it is one

_SELF_TESTS = ("raid6_select_algo", "raid6_init", "calibrate_xor_blocks")
"""Initialisations of user-mode Linux that measure which way to compute checksums is quickest: most of its boot."""

_LOOPS_PER_JIFFY = 25_563_136
"""What user-mode Linux would find out about itself by counting for a while. Nothing in a guest spins by it."""


def walled(
    words: Sequence[str],
    *,
    processors: Sequence[int],
    root: bool,
    own_network: bool = True,
    group: int = NOBODY,
) -> list[str]:
    """A machine with as little of its user as can be: chosen processors, no capabilities, nobody's user id.

    In a name space of processes it is the first one: whatever it has started ends with it. It ends with its parent.
    """
    chosen = ["taskset", "--cpu-list", ",".join(map(str, processors))]
    if root:
        chosen += ["unshare", "--ipc", "--mount", "--pid", "--fork", "--kill-child=KILL"]
        chosen += ["--net"] if own_network else []
    chosen += ["setpriv", "--no-new-privs", "--inh-caps=-all"]
    if root:
        chosen += [
            "--bounding-set=-all",
            "--clear-groups",
            f"--reuid={NOBODY}",
            f"--regid={group}",
        ]
        chosen += ["--pdeathsig=KILL"]
    return [*chosen, *words]


def uml_line(kernel: str, shape: Shape, *, initrd: int, disk: int, port: int) -> list[str]:
    """Files are descriptors, so that nobody's user needs no way to them; the copy-on-write file is made where it starts.

    `hostfs` would let the guest's root mount whatever this process can read: it is tied to a place that is not there.
    """
    return [
        kernel,
        f"mem={shape.memory_mib}M",
        f"initrd={descriptor(initrd)}",
        "rdinit=/init",
        "quiet",
        "panic=-1",
        "uml_dir=.",
        "umid=guest",
        f"hostfs={NOWHERE}",
        f"ssl0=fd:{port},fd:{port}",
        "ssl=null",
        "con=null",
        "con0=null,fd:2",
        "console=tty0",
        f"ubd0=cow,{descriptor(disk)}",
        f"initcall_blacklist={','.join(_SELF_TESTS)}",
        f"lpj={_LOOPS_PER_JIFFY}",
        *guest_words(shape, port="/dev/ttyS0", root="/dev/ubda"),
    ]


def guest_words(shape: Shape, *, port: str, root: str) -> list[str]:
    """What the kernel passes on to its first process: see native/guest.h."""
    words = [f"excise_port={port}", f"excise_root={root}"]
    return words if shape.pids is None else [*words, f"excise_tasks={shape.pids}"]


def descriptor(number: int) -> str:
    return f"/proc/self/fd/{number}"
