"""Taking layers out of a store, and what killed builders left in it, without ever taking what is in use."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable
from pathlib import Path

from excise.errors import LayerError
from excise.layers.key import is_key
from excise.layers.lock import Hold, hold
from excise.layers.place import Place, remove_tree

LOGS = 100
"""Kept of builds that failed."""

_NOTHING_TO_HOLD = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def workshop(place: Path, key: str) -> Path:
    """A name that nothing else has: an orphan of a killed builder may still write to the old one."""
    return place / f"{key}.{secrets.token_hex(4)}"


def pinned(place: Place, keys: Iterable[str]) -> frozenset[str]:
    """Those of `keys` that somebody uses now."""
    return frozenset(key for key in keys if _is_pinned(place, key))


def _is_pinned(place: Place, key: str) -> bool:
    try:
        held = hold(place.pin(key), wait=False, create=False)
    except _NOTHING_TO_HOLD:
        return False
    if held is not None:
        held.close()
    return held is None


def take_out(place: Place, key: str) -> Path | None:
    """Make the layer invisible; the caller holds its lock and removes what is returned. None if it is in use."""
    aside = workshop(place.building, key)
    held: Hold | contextlib.nullcontext[None] | None
    try:
        held = hold(place.pin(key), wait=False, create=False)
    except _NOTHING_TO_HOLD:  # damaged: nobody can have pinned it
        held = contextlib.nullcontext()
    if held is None:
        return None
    with held, contextlib.suppress(FileNotFoundError):
        place.layer(key).rename(aside)
    return aside


def remove(place: Place, key: str) -> bool:
    """Remove the layer unless it is in use or being built; says whether it is gone."""
    held = hold(place.lock(key), wait=False)
    if held is None:
        return False
    with held:
        aside = take_out(place, key)
        if aside is None:
            return False
        remove_tree(aside)
        place.lock(key).unlink(missing_ok=True)
        return True


def sweep(place: Place) -> int:
    """Remove what dead builders and removers left, and idle locks; says how many folders there were."""
    swept = 0
    for left_over in sorted(place.building.iterdir()):
        key = left_over.name.partition(".")[0]
        if not is_key(key):
            continue
        held = hold(place.lock(key), wait=False)
        if held is None:
            continue
        with held:
            try:
                swept += left_over.exists()
                remove_tree(left_over)
            except LayerError:
                continue  # an orphan of the builder still writes there; the next sweep takes it
    _drop_idle_locks(place)
    _drop_old_logs(place)
    return swept


def _drop_old_logs(place: Place) -> None:
    """Keep what the last few builds said that failed."""
    with contextlib.suppress(FileNotFoundError):
        logs = sorted(place.logs.iterdir(), key=lambda log: log.stat().st_mtime)
        for log in logs[:-LOGS]:
            log.unlink(missing_ok=True)


def _drop_idle_locks(place: Place) -> None:
    for lock in place.locks.iterdir():
        if place.layer(lock.name).exists():
            continue
        held = hold(lock, wait=False)
        if held is not None:
            with held:
                if not place.layer(lock.name).exists():
                    lock.unlink()
