"""How far a replay agrees with what was recorded: exit codes where known, and how alike the outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from excise.workloads.goldens import normalise
from excise.workloads.replay.form import Recorded

COMPARED_LINES = 400
"""Longer outputs are compared by their head and tail: the matcher's cost grows with the square."""
COMPARED_CHARACTERS = 2_000
SAME = 0.9
"""From this similarity on, an observation counts as the same."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One action's recorded outcome against its outcome here; None where nothing was recorded."""

    i: int
    kind: str
    recorded_rc: int | None
    rc: int
    similarity: float | None

    @property
    def same_rc(self) -> bool | None:
        return None if self.recorded_rc is None else self.recorded_rc == self.rc


@dataclass(frozen=True, slots=True)
class Summary:
    """Agreement over a whole replay: how many of how many, and the mean similarity."""

    actions: int
    rc_known: int
    rc_equal: int
    output_known: int
    output_same: int
    mean_similarity: float | None


def agree(recorded: Recorded, rc: int, output: str) -> Agreement:
    """Compare one action; `rc` is -1 where the command was cut off, as recordings have it."""
    alike = None if recorded.obs is None else similarity(recorded.obs, output)
    return Agreement(recorded.i, recorded.kind, recorded.rc, rc, alike)


def summarise(agreements: Sequence[Agreement]) -> Summary:
    """Count what agrees among what is known."""
    codes = [a.same_rc for a in agreements if a.same_rc is not None]
    alike = [a.similarity for a in agreements if a.similarity is not None]
    return Summary(
        actions=len(agreements),
        rc_known=len(codes),
        rc_equal=sum(codes),
        output_known=len(alike),
        output_same=sum(value >= SAME for value in alike),
        mean_similarity=sum(alike) / len(alike) if alike else None,
    )


def similarity(one: str, other: str) -> float:
    """1 for equal after normalisation, 0 for nothing in common; lines for long outputs, characters for short."""
    a, b = _plain(one), _plain(other)
    if a == b:
        return 1.0
    if len(a) + len(b) <= COMPARED_CHARACTERS:
        return SequenceMatcher(None, a, b, autojunk=False).ratio()
    return SequenceMatcher(None, _lines(a), _lines(b), autojunk=False).ratio()


def _plain(text: str) -> str:
    data = normalise(text.replace("\r\n", "\n").encode("utf-8", "replace"))
    return data.decode("utf-8", "replace").strip()


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    half = COMPARED_LINES // 2
    return lines if len(lines) <= COMPARED_LINES else [*lines[:half], *lines[-half:]]
