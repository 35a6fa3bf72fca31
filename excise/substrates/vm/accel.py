"""Whether the hardware helps: shown by a guest that boots, because a device node proves nothing.

There are hosts whose /dev/kvm opens, takes a machine, and never gets a stock kernel through its first second.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from excise.substrates.vm.qemu_line import KVM, TCG

NODE = Path("/dev/kvm")
PROBE_S = 5.0
"""A guest that the hardware helps answers within one second; one that it does not, never."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How guests run here, and why so."""

    accel: str
    why: str

    @property
    def emulated(self) -> bool:
        return self.accel == TCG


def at_a_glance(cpuinfo: str, node_opens: bool) -> Verdict | None:
    """What needs no probe: without the processor's help, or a way to it, everything is emulated."""
    if not re.search(r"^flags\s*:.*\b(vmx|svm)\b", cpuinfo, re.MULTILINE):
        return Verdict(TCG, "the processor shows neither vmx nor svm")
    if not node_opens:
        return Verdict(TCG, f"{NODE} cannot be opened")
    return None


def what_is_seen() -> tuple[str, bool]:
    """What the processor says of itself, and whether the way to its help is open."""
    return Path("/proc/cpuinfo").read_text(), os.access(NODE, os.R_OK | os.W_OK)


async def find_out(
    cache: Path,
    boots: Callable[[], Awaitable[bool]],
    seen: Callable[[], tuple[str, bool]] = what_is_seen,
) -> Verdict:
    """The verdict for as long as this host is up. `boots` tries a guest with KVM, for `PROBE_S` at most."""
    known = _read(cache)
    if known is not None:
        return known
    verdict = at_a_glance(*seen())
    if verdict is None:
        booted = await boots()
        said = "a guest booted with it" if booted else f"no guest boots with it in {PROBE_S:g} s"
        verdict = Verdict(KVM if booted else TCG, f"{NODE} is there, and {said}")
    _write(cache, verdict)
    return verdict


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _read(cache: Path) -> Verdict | None:
    try:
        found = json.loads(cache.read_text())
        return Verdict(**found["verdict"]) if found["boot"] == boot_id() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(cache: Path, verdict: Verdict) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    fresh = cache.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"boot": boot_id(), "verdict": asdict(verdict)}))
    fresh.replace(cache)
