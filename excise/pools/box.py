"""One sandbox of the substrate, what it holds, and what is known of it; and those that were found unfit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from excise.pools.environments import Environment
from excise.pools.fitness import Life
from excise.types import Handle

REMEMBERED = 100


@dataclass(slots=True)
class Box:
    """A sandbox that is the pool's to hand out, or was."""

    handle: Handle
    environment: Environment
    life: Life
    since_s: float

    def doubt(self, why: str) -> None:
        """From now on it is not handed out any more; the first reason stands."""
        if self.life.doubt is None:
            self.life = replace(self.life, doubt=why)


@dataclass(slots=True)
class Group:
    """Sandboxes at one stage that are made in one go, and how many are still to come."""

    left: int


@dataclass(frozen=True, slots=True)
class Unfit:
    """A sandbox that could not be proved fit: which, where it stood, after how many rollouts, and what was wrong."""

    handle: Handle
    stage: str
    uses: int
    why: str
    at_s: float


@dataclass(slots=True)
class Quarantine:
    """What was taken out of use because it was not what it should be; the last of them are remembered."""

    _found: deque[Unfit] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def __iter__(self) -> Iterator[Unfit]:
        return iter(self._found)

    def add(self, box: Box, error: BaseException, now_s: float) -> None:
        """It is not used any more, and this is why."""
        why = str(error)
        box.doubt(why)
        last = box.environment.path[-1]
        stage = f"{last.kind} {last.key[:12]}"
        self._found.append(Unfit(box.handle, stage, box.life.uses, why, now_s))
