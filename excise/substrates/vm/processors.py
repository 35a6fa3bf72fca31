"""Which of the host's processors a guest runs on."""

from __future__ import annotations

import os

from excise.errors import InputError
from excise.substrates.vm.config import Shape


def processors_of(shape: Shape) -> list[int]:
    """Those that a guest may run on: the asked for, which need not be the harness's own, else ours."""
    if shape.cpuset is None:
        return sorted(os.sched_getaffinity(0))
    usable = sorted(set(shape.cpuset) & set(range(os.cpu_count() or 1)))
    if not usable:
        raise InputError(f"limits.cpuset names none of this host's processors: {shape.cpuset}")
    return usable
