"""From a spec to what is made ahead for it: the part that many rollouts share, its path, and its price."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from excise.pools.abilities import Binds, Lays, Staged
from excise.pools.stage import Kind, Path, Stage, checked, whole_price_s
from excise.substrates.base import Substrate
from excise.types import Spec

UNKNOWN_S = 1.0
"""What making a sandbox is taken to cost before the first one was made."""

SMOOTHING = 0.3
MOST = 10_000
"""Prices remembered; the oldest is forgotten beyond that."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a sandbox can be made as before anybody asked for it.

    `below` stages of the substrate's own path are not in `path`, because whoever shares nothing else is no relation.
    """

    spec: Spec
    path: Path
    below: int = 0

    @property
    def key(self) -> str:
        return self.path[-1].key

    @property
    def depth(self) -> int:
        """The same end, as the substrate counts."""
        return self.below + len(self.path)

    def cut(self, depth: int) -> Environment:
        """Its first stages alone."""
        return replace(self, path=self.path[:depth])


class Environments:
    """Knows what the substrate binds late, and what it cost to make each environment, or to take one further."""

    def __init__(self, substrate: Substrate, *, from_base: bool = False) -> None:
        self._staged = substrate if isinstance(substrate, Staged) else None
        self._binds = isinstance(substrate, Binds)
        self._lays = isinstance(substrate, Lays)
        self._from_base = from_base
        self._price_s: dict[str, float] = {}
        self.create_s = UNKNOWN_S
        self.advance_s = 0.0
        """What taking a sandbox further costs besides the stages that are missing."""

    def of(self, spec: Spec) -> Environment:
        """Nothing that belongs to one rollout is in it, as far as the substrate can set that later."""
        ahead = _ahead(spec, binds=self._binds)
        if self._staged is None:
            shape = _digest(repr(replace(ahead, repo=None, image="")))
            key = f"{shape}/{_digest(repr((ahead.image, ahead.repo)))}"
            price_s = self._price_s.get(key, self.create_s)
            return Environment(ahead, (Stage(Kind.IMAGE, key, price_s),))
        path = checked(self._staged.stages(ahead))
        if not self._binds:
            shape = _digest(repr(replace(ahead, repo=None, image="", deps=(), warm=None)))
            path = tuple(replace(s, key=f"{shape}/{s.key}") for s in path)
        alone = path[0].kind is Kind.BASE and len(path) > 1 and not self._from_base
        return Environment(ahead, path[1:], below=1) if alone else Environment(ahead, path)

    def missing(self, environment: Environment) -> bool:
        """Whether something has to be prepared before sandboxes can be made there, as things are now."""
        if not self._lays or whole_price_s(environment.path) == 0:
            return False
        return whole_price_s(self.of(environment.spec).path[: len(environment.path)]) > 0

    @property
    def base_s(self) -> float:
        """What a sandbox costs besides its stages; where there are none, all of it is in the one price."""
        return self.create_s if self._staged else 0.0

    def took(self, key: str, seconds: float) -> None:
        """Making one took so long. A price falls at once, as when layers are there from now on; it rises slowly."""
        known = self._price_s.pop(key, seconds)
        self._price_s[key] = min(seconds, known + SMOOTHING * (seconds - known))
        first = len(self._price_s) == 1
        self.create_s = seconds if first else self.create_s + SMOOTHING * (seconds - self.create_s)
        while len(self._price_s) > MOST:
            del self._price_s[next(iter(self._price_s))]

    def advanced(self, seconds: float, left_s: float) -> None:
        """Taking one further took so long, of which so much was expected for the missing stages."""
        beyond_s = max(0.0, seconds - left_s)
        self.advance_s += SMOOTHING * (beyond_s - self.advance_s)


def _ahead(spec: Spec, *, binds: bool) -> Spec:
    """With the limits of whoever asked last, where they can be changed: most often they need not be."""
    if binds:
        return Spec(
            image=spec.image, repo=spec.repo, deps=spec.deps, limits=spec.limits, warm=spec.warm
        )
    return replace(spec, env={}, labels={})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
