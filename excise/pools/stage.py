"""An environment is a path of stages; what a worker still lacks of it is its work left.

A stage's key is a content address of its recipe and of everything below it, so that equal keys mean equal
environments up to there, and whoever holds a stage holds all that it stands on. Prices are seconds, as
measured when the stage was last built here.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from excise.errors import InputError


class Kind(StrEnum):
    """What a stage adds, in the paper's words."""

    BASE = "base"
    IMAGE = "image"
    REPO = "repository"
    DEPENDENCIES = "dependencies"
    INTERPRETER = "interpreter"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer of an environment: its content address, and what adding it costs here and now."""

    kind: Kind
    key: str
    price_s: float
    size_bytes: int = 0


Path: TypeAlias = tuple[Stage, ...]
"""An environment, base first."""


def checked(path: Sequence[Stage]) -> Path:
    """The path, or an InputError that says why nothing can be planned with it."""
    if not path:
        raise InputError("an environment needs at least one stage, its base")
    for stage in path:
        if not (math.isfinite(stage.price_s) and stage.price_s >= 0 and stage.size_bytes >= 0):
            raise InputError(
                f"the {stage.kind} stage {stage.key} has no sane price or size: {stage}"
            )
    if len({stage.key for stage in path}) < len(path):
        raise InputError(
            "a key occurs twice in one path; a key must name the stage and all below it"
        )
    return tuple(path)


def keys_of(path: Path) -> tuple[str, ...]:
    """The stages by name, base first."""
    return tuple(stage.key for stage in path)


def whole_price_s(path: Path) -> float:
    """What building the environment from nothing costs."""
    return sum(stage.price_s for stage in path)


def shared(held: Container[str], want: Path) -> int:
    """How many stages of `want` are there, counted from the base: the deepest one that is held decides."""
    for depth in range(len(want), 0, -1):
        if want[depth - 1].key in held:
            return depth
    return 0


def work_left_s(held: Container[str], want: Path) -> float:
    """The price of the stages still missing. Whoever was warmed for `want` has nothing left."""
    return sum(stage.price_s for stage in want[shared(held, want) :])
