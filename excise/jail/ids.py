"""Which ids of the host stand for a jail's own 0 to 65535: a range that nobody has."""

from __future__ import annotations

WANTED = 0x7000_0000
"""Above what the usual tools hand out to users and containers, below what 32 signed bits cannot hold."""
COUNT = 65536


def first_id(uid_map: str) -> int:
    """The first id of ours in a name space with this /proc/PID/uid_map; 0 if it has not got so many.

    0 means: jails have the ids of whoever runs the spawner, and nobody else's.
    """
    best = 0
    for line in uid_map.splitlines():
        inside, _, count = map(int, line.split())
        if inside <= WANTED and inside + count >= WANTED + COUNT:
            return WANTED
        last = (inside + count - COUNT) // COUNT * COUNT
        if last >= max(inside, COUNT):
            best = max(best, last)
    return best


def subordinate(table: str, name: str, number: int) -> int | None:
    """Where in this /etc/subuid or /etc/subgid a range of 65535 ids begins that is the user's."""
    for line in table.splitlines():
        owner, _, rest = line.partition(":")
        first, _, count = rest.partition(":")
        if owner not in {name, str(number)} or not (first.isdigit() and count.isdigit()):
            continue
        if int(count) >= COUNT - 1 and int(first) > 0:
            return int(first)
    return None
