"""Values out of a client's JSON, held to their types: what is wrong with one is said in one line."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from excise.errors import InputError

T = TypeVar("T")
MOST_NAMES = 1000
"""Variables or labels in one request."""


def text(found: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A string that must be there, or has a default."""
    value = _typed(found, name, str, default)
    if value is None:
        raise InputError(f"{name} is missing")
    return value


def maybe_text(found: Mapping[str, Any], name: str) -> str | None:
    return _typed(found, name, str, None)


def whole(found: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A number that is not negative. In this JSON large ones may be strings."""
    value = maybe_whole(found, name)
    if value is None:
        value = default
    if value is None:
        raise InputError(f"{name} is missing")
    return value


def maybe_whole(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} is no whole number")
    if not 0 <= value < 2**63:
        raise InputError(f"{name} is {value}: give 0 or more")
    return value


def flag(found: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = _typed(found, name, bool, default)
    return default if value is None else value


def table(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object; empty where it is left out."""
    return _typed(found, name, dict, None) or {}


def words(found: Mapping[str, Any], name: str) -> list[str]:
    """A list of strings; empty where it is left out."""
    value = _typed(found, name, list, None) or []
    if not all(isinstance(each, str) for each in value):
        raise InputError(f"{name} is no list of strings")
    return cast("list[str]", value)


def tables(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects; empty where it is left out."""
    value = _typed(found, name, list, None) or []
    if not all(isinstance(each, dict) for each in value):
        raise InputError(f"{name} is no list of objects")
    return cast("list[dict[str, Any]]", value)


def texts(found: Mapping[str, Any], name: str) -> dict[str, str]:
    """An object of strings: variables, labels."""
    value = table(found, name)
    if len(value) > MOST_NAMES:
        raise InputError(f"{name} has {len(value)} entries; {MOST_NAMES} is the most")
    for key, each in value.items():
        if not isinstance(each, str):
            raise InputError(f"{name}.{key[:80]} is no string")
    return cast("dict[str, str]", value)


def environment(found: Mapping[str, Any], name: str) -> dict[str, str]:
    """Variables that a process can be given."""
    value = texts(found, name)
    for key, each in value.items():
        if not key or "=" in key or "\0" in key + each:
            raise InputError(f"{name}: {key[:80]!r} is no variable")
    return value


def octets(found: Mapping[str, Any], name: str) -> bytes:
    """Bytes, as base64 in JSON."""
    try:
        return b64decode(text(found, name, ""), validate=True)
    except (NotBase64, ValueError):
        raise InputError(f"{name} is not base64") from None


def _typed(found: Mapping[str, Any], name: str, kind: type[T], default: T | None) -> T | None:
    value = found.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise InputError(f"{name} is no {kind.__name__}")
    return value
