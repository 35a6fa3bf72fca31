"""Which sandboxes a list shows, in which order, a page at a time. Works on sandboxes as they are told. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from excise.errors import InputError

Told = dict[str, object]

PAGE = 100
LONGEST_PAGE = 200
_ORDERS = {
    "createdAt": "createdAt",
    "updatedAt": "updatedAt",
    "lastActivityAt": "lastActivityAt",
    "lastEventAt": "lastActivityAt",
    "name": "name",
    "cpu": "cpu",
    "memoryGib": "memory",
    "diskGib": "disk",
}
_AT_LEAST = {"minCpu": "cpu", "minMemoryGiB": "memory", "minDiskGiB": "disk"}
_AT_MOST = {"maxCpu": "cpu", "maxMemoryGiB": "memory", "maxDiskGiB": "disk"}
_AFTER = {
    "createdAtAfter": "createdAt",
    "lastEventAfter": "lastActivityAt",
    "autoDestroyAtAfter": "autoDestroyAt",
}
_BEFORE = {
    "createdAtBefore": "createdAt",
    "lastEventBefore": "lastActivityAt",
    "autoDestroyAtBefore": "autoDestroyAt",
}


@dataclass(frozen=True, slots=True)
class Query:
    """What a list is to show. Every value is as the request has it."""

    single: Mapping[str, str]
    several: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def labels(self) -> dict[str, str]:
        """All of these must be there with these values."""
        text = self.single.get("labels")
        if not text or text == "null":
            return {}
        try:
            return msgspec.json.decode(text, type=dict[str, str])
        except msgspec.MsgspecError as error:
            raise InputError("labels is a JSON object of texts") from error


def shown(items: Sequence[Told], query: Query) -> list[Told]:
    """Those that are asked for, in the order that is asked for; in that of their making if none is."""
    found = [item for item in items if _wanted(item, query)]
    by = query.single.get("sort")
    if by is not None:
        if by not in _ORDERS:
            raise InputError(f"sort by one of {', '.join(sorted(_ORDERS))}")
        found.sort(key=lambda item: _rank(item[_ORDERS[by]]))
    if query.single.get("order") == "desc":
        found.reverse()
    return found


def page(items: Sequence[Told], cursor: str | None, limit: int) -> tuple[list[Told], str | None]:
    """A part of the list, and the cursor of the next part."""
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InputError("that is no cursor of ours")
    at = int(cursor or 0)
    more = at + limit < len(items)
    return list(items[at : at + limit]), str(at + limit) if more else None


def _wanted(item: Told, query: Query) -> bool:
    single, several = query.single, query.several
    for name in ("id", "name"):
        prefix = single.get(name)
        if prefix and not str(item[name]).lower().startswith(prefix.lower()):
            return False
    for name, key in (("states", "state"), ("snapshots", "snapshot"), ("regionIds", "target")):
        wanted = several.get(name)
        if wanted and item[key] not in wanted:
            return False
    for name, key in (("isPublic", "public"), ("isRecoverable", "recoverable")):
        flag = single.get(name)
        if flag and (flag.lower() == "true") != item[key]:
            return False
    return _in_bounds(item, single)


def _in_bounds(item: Told, single: Mapping[str, str]) -> bool:
    for names, least in ((_AT_LEAST, True), (_AT_MOST, False)):
        for name, key in names.items():
            if bound := single.get(name):
                value, limit = _number(item[key]), _number(bound)
                if value < limit if least else value > limit:
                    return False
    for names, after in ((_AFTER, True), (_BEFORE, False)):
        for name, key in names.items():
            if bound := single.get(name):
                if item[key] is None:
                    return False
                at, limit_at = _time(str(item[key])), _time(bound)
                if at <= limit_at if after else at >= limit_at:
                    return False
    return True


def _rank(value: object) -> tuple[bool, float, str]:
    number = value if isinstance(value, int) else 0
    return value is not None, number, str(value).lower()


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise InputError(f"{str(value)[:40]!r} is no number") from None


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r} is no time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
