"""Random layer trees, paths in them, and who waits and idles: shared by the tests of pools and scheduler."""

from __future__ import annotations

from hypothesis import strategies as st

from excise.pools.stage import Kind, Stage
from excise.scheduler.idle import Worker
from excise.scheduler.waiting import Wanted

KINDS = (Kind.BASE, Kind.IMAGE, Kind.REPO, Kind.DEPENDENCIES, Kind.SNAPSHOT)
SIZE = 1_000_000


def price_of(key: str) -> float:
    """A stage's price follows from its key, so that equal keys have equal prices."""
    return (sum(map(ord, key)) * 7 + len(key) * 3) % 11 + 0.25


def path_of(turns) -> tuple[Stage, ...]:
    """(0, 2, 1) is the environment that takes the second branch at the image and so on."""
    keys = ["/".join(map(str, turns[: i + 1])) for i in range(len(turns))]
    return tuple(Stage(KINDS[min(i, 4)], key, price_of(key), SIZE) for i, key in enumerate(keys))


turns = st.lists(st.integers(0, 2), min_size=1, max_size=4).map(lambda rest: (0, *rest))
paths = turns.map(path_of)
workers = st.lists(st.one_of(st.just(()), paths), max_size=6).map(
    lambda ps: [Worker(f"w{i}", tuple(s.key for s in p)) for i, p in enumerate(ps)]
)
wanted = st.lists(st.tuples(paths, st.sampled_from(["ann", "bob", "cy"])), max_size=6).map(
    lambda ws: [Wanted(f"r{i}", path, owner) for i, (path, owner) in enumerate(ws)]
)
