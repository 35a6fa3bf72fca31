"""Which handler a path belongs to: a table of its own, since one protocol has a hundred paths below one prefix. Pure.

Paths without variables are found at once; the others are compared piece by piece, with the same number of pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import unquote

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Route(Generic[H]):
    """`path` is relative and its variables are pieces in braces: `process/session/{session}/exec`."""

    method: str
    path: str
    handler: H


class Table(Generic[H]):
    """Finds the handler of a method and a path, as it stands in the request (still quoted)."""

    def __init__(self, routes: Iterable[Route[H]]) -> None:
        self._plain: dict[tuple[str, str], H] = {}
        self._open: dict[tuple[str, int], list[tuple[tuple[str, ...], H]]] = {}
        for route in routes:
            pieces = tuple(route.path.split("/"))
            if "{" not in route.path:
                self._plain[route.method, route.path] = route.handler
            else:
                self._open.setdefault((route.method, len(pieces)), []).append(
                    (pieces, route.handler)
                )

    def find(self, method: str, path: str) -> tuple[H, tuple[str, ...]] | None:
        """The handler, and the variables in the order in which they stand in its path."""
        handler = self._plain.get((method, path))
        if handler is not None:
            return handler, ()
        given = path.split("/")
        for pieces, candidate in self._open.get((method, len(given)), ()):
            found = _variables(pieces, given)
            if found is not None:
                return candidate, found
        return None


def _variables(pieces: tuple[str, ...], given: list[str]) -> tuple[str, ...] | None:
    found = []
    for piece, word in zip(pieces, given, strict=True):
        if piece.startswith("{"):
            if not word:
                return None
            found.append(unquote(word))
        elif piece != word:
            return None
    return tuple(found)
