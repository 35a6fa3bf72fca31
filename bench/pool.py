"""What a warm pool gives a rollout, on real jails of this host; and which worker gets which rollout, by simulation.

The first rows need root and the tools of egress (apt install passt nftables dnsmasq-base); they build the
dependencies of a task and so take a while before the first. The simulation is given the prices of those builds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.convention import Row
from bench.pools import simulated, warm
from bench.pools.world import world
from excise.jail.ground import import_archive
from excise.layers.host import build_rootfs
from excise.layers.store import Store

COMMITS = 10


def rows() -> Iterator[Row]:
    with world(COMMITS) as made:
        image_s = _unpack_s()
        yield from asyncio.run(warm.rows(made))
        prices = warm.prices(made, image_s)
    yield from simulated.rows(prices)


def _unpack_s() -> float:
    """Seconds to lay out an image of this host's own programs; one that is pulled costs more."""
    with tempfile.TemporaryDirectory(prefix="excise-bench-") as folder:
        built = build_rootfs(out=Path(folder, "image"))
        start = time.monotonic()
        import_archive(Store(Path(folder, "store")), built.reference, built.archive)
        return time.monotonic() - start
