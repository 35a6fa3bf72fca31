"""What became of invocations of an interpreter that is kept warm: one byte each, written by native/standin.c."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

PLACE = "/var/lib/excise/counts"
"""In a sandbox. Whoever works there may write what he likes into it, so it counts and proves nothing."""

MOST_BYTES = 1 << 20


class Reason(StrEnum):
    """Served, or why the real interpreter was run."""

    SERVED = "served"
    FLAGS = "flags"
    PROMPT = "prompt"
    VARIABLES = "variables"
    LOCALE = "locale"
    ELSEWHERE = "elsewhere"
    CHANGED = "changed"
    SIGNALS = "signals"
    DESCRIPTORS = "descriptors"
    PRIVILEGED = "privileged"
    UNREADABLE = "unreadable"
    KERNEL = "kernel"
    ADDRESSES = "addresses"
    MEMORY = "memory"
    FAILED = "failed"


LETTERS = {
    "s": Reason.SERVED,
    "f": Reason.FLAGS,
    "n": Reason.PROMPT,
    "v": Reason.VARIABLES,
    "l": Reason.LOCALE,
    "e": Reason.ELSEWHERE,
    "c": Reason.CHANGED,
    "i": Reason.SIGNALS,
    "d": Reason.DESCRIPTORS,
    "p": Reason.PRIVILEGED,
    "u": Reason.UNREADABLE,
    "k": Reason.KERNEL,
    "a": Reason.ADDRESSES,
    "m": Reason.MEMORY,
    "x": Reason.FAILED,
}
"""As in native/asked.h. One that was counted as failed was counted as served before."""


def counted(written: bytes) -> Counter[Reason]:
    """How often what happened; bytes that nobody knows are left out."""
    found = Counter(written.decode("latin-1"))
    told = Counter({reason: found[letter] for letter, reason in LETTERS.items() if found[letter]})
    failed = told[Reason.FAILED]
    if failed:
        told[Reason.SERVED] = max(0, told[Reason.SERVED] - failed)
    return +told


def taken(upper: int) -> Counter[Reason]:
    """Of the sandbox whose upper folder this is; the descriptor is closed. No link in there is followed."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    at = upper
    try:
        *folders, name = PLACE[1:].split("/")
        for folder in folders:
            inner = os.open(folder, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        with os.fdopen(os.open(name, flags | os.O_NONBLOCK, dir_fd=at), "rb") as file:
            return counted(file.read(MOST_BYTES))
    except OSError:
        return Counter()
    finally:
        os.close(at)


def metrics(told: Mapping[str, int]) -> list[str]:
    """As Prometheus reads them."""
    name = "excise_warm_interpreter_runs_total"
    lines = [
        f"# HELP {name} Invocations of interpreters that are kept warm.",
        f"# TYPE {name} counter",
    ]
    return [*lines, *(f'{name}{{outcome="{reason}"}} {told.get(reason, 0)}' for reason in Reason)]
