"""What the store hands out: a layer, a hold on it, and the two ways in which there may be none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from excise.errors import LayerError
from excise.layers.key import SHOWN
from excise.layers.lock import Hold
from excise.layers.manifest import Manifest


class LayerGone(LayerError):
    """The layer was removed since it was looked up; building it again brings it back."""


class StoreFull(LayerError):
    """The disk has no room for the layer; nothing of it is left behind."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One read-only tree at `path`. `parents` are the keys of the layers it stands on, nearest first."""

    id: str
    path: Path
    parents: tuple[str, ...]
    facts: Manifest

    @property
    def short(self) -> str:
        return self.id[:SHOWN]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store takes. `unfinished` counts builds that are under way or were left behind."""

    layers: int
    bytes: int
    pinned_bytes: int
    entries: int
    unfinished: int
    free_bytes: int


class Pin:
    """Keeps layers, and all they stand on, from being removed until it is closed or its process ends."""

    def __init__(self, layers: tuple[Layer, ...], holds: list[Hold]) -> None:
        self.layers = layers
        self._holds = holds

    def close(self) -> None:
        """Let go; a second time does nothing."""
        while self._holds:
            self._holds.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()
