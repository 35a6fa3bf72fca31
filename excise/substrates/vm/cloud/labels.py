"""Who made a machine, as a cloud keeps it: labels that every cloud takes, of 63 small letters, digits and dots at most."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from excise.substrates.container.owner import Owner, is_orphan, myself, started_ticks

MINE = "excise"
_OWNER = "excise-owner"
_WRITTEN = re.compile(r"([0-9a-f]{16})\.([0-9]+)\.([0-9]+)\.([0-9]+)")


def labels_of(owner: Owner) -> dict[str, str]:
    said = f"{_short(owner.boot)}.{owner.pid_space}.{owner.pid}.{owner.started_ticks}"
    return {MINE: "1", _OWNER: said}


def is_left_behind(labels: Mapping[str, str]) -> bool:
    """Whether its owner, a process of this host and boot, is certainly dead. Others' are never touched."""
    found, me = _WRITTEN.fullmatch(labels.get(_OWNER, "")), myself()
    if found is None or found[1] != _short(me.boot):
        return False
    who = replace(me, pid_space=found[2], pid=int(found[3]), started_ticks=int(found[4]))
    return is_orphan(who, me, started_ticks(who.pid))


def _short(boot: str) -> str:
    """Half of it, which is random enough for the hosts of one account."""
    return boot.replace("-", "")[:16]
