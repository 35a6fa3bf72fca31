"""What a user without root has been given on this host: ids besides his own."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

from excise.jail.ids import subordinate


def words() -> list[str]:
    """The spawner's arguments that use them; none for root, or where nothing was given."""
    if os.geteuid() == 0 or not all(map(shutil.which, ("newuidmap", "newgidmap"))):
        return []
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
        uid = subordinate(Path("/etc/subuid").read_text(), name, os.geteuid())
        gid = subordinate(Path("/etc/subgid").read_text(), name, os.geteuid())
    except (KeyError, OSError):
        return []
    return [] if uid is None or gid is None else ["--subordinate", f"{uid}:{gid}"]
