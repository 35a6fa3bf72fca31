"""Rollouts to simulate: trees of environments, popular ones and rare ones, in steps or as a stream."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from excise.pools.stage import Kind, Path, Stage
from excise.scheduler.simulate import Rollout


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds that building one stage takes; give measured ones."""

    image_s: float
    repo_s: float
    dependencies_s: float


@dataclass(frozen=True, slots=True)
class Forest:
    """So many images, repositories per image, and commits with dependencies per repository."""

    images: int
    repos: int
    commits: int

    @property
    def tasks(self) -> int:
        return self.images * self.repos * self.commits

    def path(self, task: int, prices: Prices) -> Path:
        """The environment of one task; neighbours share most."""
        repo, commit = divmod(task, self.commits)
        image = repo // self.repos
        return (
            Stage(Kind.IMAGE, f"i{image}", prices.image_s),
            Stage(Kind.DEPENDENCIES, f"i{image}/d{repo}", prices.dependencies_s),
            Stage(Kind.REPO, f"i{image}/d{repo}/c{commit}", prices.repo_s),
        )


def zipf(tasks: int, exponent: float = 1.1) -> Sequence[float]:
    """Weights that fall with the rank: a few tasks make most of the load."""
    return [1.0 / (rank + 1) ** exponent for rank in range(tasks)]


def uniform(tasks: int) -> Sequence[float]:
    """Every task is as likely as any other."""
    return [1.0] * tasks


def rollouts(
    count: int,
    forest: Forest,
    prices: Prices,
    weights: Sequence[float],
    *,
    seed: int,
    work_s: float = 10.0,
    rate_per_s: float | None = None,
    churn_every: int = 0,
) -> list[Rollout]:
    """`count` rollouts, all at once or at a rate; with churn the favourites change every so many."""
    drawn = random.Random(f"rollouts/{seed}")  # noqa: S311 - a simulation, not a secret
    paths = [forest.path(task, prices) for task in range(forest.tasks)]
    ranks = list(range(forest.tasks))
    drawn.shuffle(ranks)
    edges = list(itertools.accumulate(weights))
    now_s, made = 0.0, []
    for i in range(count):
        if churn_every and i and i % churn_every == 0:
            drawn.shuffle(ranks)
        if rate_per_s is not None:
            now_s += drawn.expovariate(rate_per_s)
        rank = bisect.bisect(edges, drawn.random() * edges[-1])
        work = drawn.lognormvariate(0.0, 0.5) * work_s
        made.append(Rollout(f"t{i}", now_s, paths[ranks[min(rank, len(ranks) - 1)]], work))
    return made


def losses(
    workers: int, *, share: float, within_s: float, away_s: float, seed: int
) -> tuple[tuple[float, int, float], ...]:
    """That share of the workers is lost once, at a random time, and comes back empty."""
    drawn = random.Random(f"losses/{seed}")  # noqa: S311 - a simulation, not a secret
    lost = drawn.sample(range(workers), round(share * workers))
    return tuple(sorted((drawn.random() * within_s, which, away_s) for which in lost))
