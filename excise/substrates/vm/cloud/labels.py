"""Who made a machine, as a cloud keeps it: labels of small letters, digits and dashes, which every cloud takes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from excise.substrates.container.owner import Owner, is_orphan, myself, started_ticks

MINE = "excise"
_OWNER = "excise-owner"


def labels_of(owner: Owner) -> dict[str, str]:
    return {MINE: "1", _OWNER: str(owner).replace("/", ".")}


def is_left_behind(labels: Mapping[str, str]) -> bool:
    """Whether its owner, a process of this host and boot, is certainly dead. Others' are never touched."""
    said = labels.get(_OWNER, "")
    if not re.fullmatch(r"[0-9a-f-]+\.[0-9]+\.[0-9]+\.[0-9]+", said):
        return False
    who = Owner.parse(said.replace(".", "/"))
    return is_orphan(who, myself(), None if who is None else started_ticks(who.pid))
