"""Record what a task's workloads give on this host's bare process, and write it into the descriptor.

    .venv/bin/python scripts/publish_goldens.py attrs-1417 T1 T2 K10 K50 K150

For whoever changed a task, a workload or the normaliser. The digests of a descriptor stand at its end.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import time
from pathlib import Path

from excise.clock import SystemClock
from excise.measure import host
from excise.measure.record import Cell
from excise.measure.reference import reference
from excise.measure.stock import LOOPBACK, Supplies, stock
from excise.measure.trial import Setting
from excise.substrates import registry
from excise.tasks import cache, forge, load
from excise.tasks.serve import GitServer
from excise.types import Limits
from excise.workloads.catalogue import workload


async def digests(task: str, keys: list[str]) -> dict[str, str]:
    """By key: the digest over all goldens of that workload of the task."""
    prepared = forge.prepare(load.task(task))
    tasks, facts = {prepared.task.id: prepared}, host.facts(cache.root())
    bare, found = registry.open_substrate("local"), {}
    tools = f"{facts['bash']} {facts['git']} {facts['system']}"
    async with GitServer({prepared.task.id: prepared.git_dir}, host=LOOPBACK) as git:
        supplies = Supplies(tasks, {LOOPBACK: git}, cache.root() / "images", Limits())
        for key in keys:
            began = time.monotonic()
            listed = workload(f"{key}:{prepared.task.id}", tasks)
            cell = Cell(label="bare", substrate="local", workload=listed.name)
            spec, site = await stock(bare, listed, supplies)
            recorded = await reference(
                Setting(cell, bare, listed, spec, site, prepared.tree),
                clock=SystemClock(),
                cache=cache.root(),
                interpreter=host.interpreter(prepared.python),
                tools=tools,
            )
            found[key] = recorded.digest
            known = prepared.task.golden.get(key)
            same = known is not None and known.sha256 == recorded.digest
            said = "as published" if same else "not as published"
            print(f"{listed.name}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
    return found


def main(name: str, *keys: str) -> None:
    """Replace all published digests of the task by those of these workloads."""
    minor = ".".join(platform.python_version_tuple()[:2])
    found = asyncio.run(digests(name, list(keys)))
    ours = Path(load.__file__).parent / "library" / f"{name}.toml"
    file = Path(name) if name.endswith(".toml") else ours
    text = file.read_text("utf-8").partition("\n[golden.")[0].rstrip("\n")
    for key, digest in found.items():
        quoted = key if key.isalnum() else f'"{key}"'
        text += f'\n\n[golden.{quoted}]\nsha256 = "{digest}"\npython = "{minor}"'
    file.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
