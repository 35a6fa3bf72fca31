"""What layers cost when they were last built here, kept when the layers themselves have gone.

One small file beside the layers. It is advice: an update that two processes make at once may be lost.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from excise.layers.layer import Layer

MOST = 10_000
"""Prices kept; the oldest go first."""

UNKNOWN_S = {
    "base": 0.2,
    "image": 20.0,
    "dependencies": 15.0,
    "interpreter": 4.0,
    "repository": 1.0,
    "snapshot": 0.0,
}
"""Taken for a kind of which none was ever built here."""

_FILE = "prices.json"


class Price(msgspec.Struct, frozen=True, array_like=True):
    """Seconds and bytes of one stage."""

    kind: str
    seconds: float
    bytes: int


class Prices:
    """By the key of a stage. Reading is a look into memory; writing rewrites the file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._known = self._read()
        self._lock = threading.Lock()

    def of(self, kind: str, key: str) -> Price:
        """As measured; else what such a stage costs here on average; else a guess."""
        known = self._known.get(key)
        if known is not None:
            return known
        alike = [price for price in self._known.values() if price.kind == kind]
        if not alike:
            return Price(kind, UNKNOWN_S[kind], 0)
        mean_s = sum(price.seconds for price in alike) / len(alike)
        return Price(kind, mean_s, sum(price.bytes for price in alike) // len(alike))

    def note(self, kind: str, key: str, layers: Sequence[Layer]) -> None:
        """The stage consists of these layers."""
        seconds = sum(layer.facts.build_s for layer in layers)
        price = Price(kind, seconds, sum(layer.facts.bytes for layer in layers))
        with self._lock:
            if self._known.get(key) == price:
                return
            self._known = {**self._read(), **self._known, key: price}
            for old in list(self._known)[: max(0, len(self._known) - MOST)]:
                del self._known[old]
            self._write()

    def _read(self) -> dict[str, Price]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Price])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _write(self) -> None:
        """A price that cannot be kept is measured again."""
        with contextlib.suppress(OSError):
            written = self._file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            written.write_bytes(msgspec.json.encode(self._known))
            written.replace(self._file)
