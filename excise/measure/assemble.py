"""From a plan to a study that can run: tasks prepared, substrates opened, repositories served, goldens known."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import ceil

from excise import __version__
from excise.clock import Clock, SystemClock
from excise.errors import InputError
from excise.measure import host, inside, placement, plan
from excise.measure.decide import Planned
from excise.measure.overhead import measure_overhead
from excise.measure.progress import Progress
from excise.measure.published import published_for, unlike_published
from excise.measure.record import OWN_PROGRAMS, Cell, StudyRecord
from excise.measure.reference import Reference, reference
from excise.measure.stock import LOOPBACK, Supplies, address_of_host, stock
from excise.measure.trial import Setting
from excise.measure.tried import tried
from excise.substrates import fake, registry
from excise.substrates.base import Describes, ImportsImages, SpawnsItself, Substrate
from excise.tasks import cache, forge, load
from excise.tasks.descriptor import Prepared, Published
from excise.tasks.serve import GitServer
from excise.workloads.base import Workload
from excise.workloads.catalogue import workload


@dataclass(frozen=True, slots=True)
class Assembled:
    """A study that can run, while its servers do."""

    record: StudyRecord
    settings: Mapping[str, Setting]
    substrates: tuple[Substrate, ...]


@asynccontextmanager
async def assembled(
    planned: Planned,
    name: str,
    progress: Progress,
    *,
    resumed: StudyRecord | None = None,
    clock: Clock | None = None,
    forgiving: bool = False,
) -> AsyncIterator[Assembled]:
    """Prepare the tasks, open the substrates, serve the repositories, record the references.

    `forgiving` leaves out a cell whose sandbox cannot be made, unless it is the bare process's.
    """
    clock = clock or SystemClock()
    facts = host.facts(cache.root())
    prepared = {
        task: await asyncio.to_thread(_prepare, task, name, progress)
        for task, name in planned.tasks.items()
    }
    only_loads = all(c.load for c in planned.cells)
    cores = placement.place(
        placement.cores(), spread=only_loads, wanted=ceil(planned.limits.cpus or 1)
    )
    placement.bind(cores)
    overhead = resumed.overhead if resumed else await measure_overhead(fake.null())
    limits = replace(planned.limits, cpuset=cores.sandboxes)
    async with AsyncExitStack() as stack:
        opened = {
            key: registry.open_substrate(key[0], **dict(key[1]))
            for key in dict.fromkeys(_key(c) for c in planned.cells)
        }
        stack.push_async_callback(_close, tuple(opened.values()))
        git = await _serve(stack, prepared, opened.values())
        supplies = Supplies(prepared, git, cache.root() / "images", limits)
        workloads = {c.workload: workload(c.workload, prepared) for c in planned.cells}
        references = await _references(workloads, supplies, clock, facts, progress)
        _refuse_other_goldens(resumed, references)
        settings, left_out = {}, {}
        for c in planned.cells:
            making = _setting(c, opened[_key(c)], workloads[c.workload], supplies, references)
            if not forgiving or c.substrate == "local":
                settings[c.name] = await making
                continue
            found = await tried(making, clock)
            if isinstance(found, Setting):
                settings[c.name] = found
            else:
                left_out[c.name] = found
                progress.say(f"without {c.name}: {found}")
        cells = tuple(c for c in planned.cells if c.name in settings)
        record = resumed or StudyRecord(
            id=f"{name}-{secrets.token_hex(4)}",
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            preset=planned.preset.name,
            seed=planned.seed,
            blocks=planned.preset.blocks,
            warm_ups=planned.preset.warm_ups,
            version=__version__,
            cells=cells,
            host=facts,
            substrates=await _described(cells, opened, settings, clock),
            overhead=overhead,
            placement=str(cores),
            limits={k: v for k, v in asdict(limits).items() if k != "cpuset"},
            tasks=dict(planned.tasks),
            skipped={**planned.skipped, **left_out},
            references={name: r.digest for name, r in references.items()},
            doubts=unlike_published(
                {name: r.digest for name, r in references.items()},
                _published(prepared),
            ),
        )
        yield Assembled(record, settings, tuple(opened.values()))


def _published(prepared: Mapping[str, Prepared]) -> dict[str, Mapping[str, Published]]:
    return {task: p.task.golden for task, p in prepared.items()}


def _key(cell: Cell) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Cells of one key share one driver."""
    return cell.substrate, tuple(sorted(cell.options.items()))


def _prepare(task: str, name: str, progress: Progress) -> Prepared:
    progress.say(f"preparing task {task}")
    return forge.prepare(load.task(name))


async def _close(substrates: Sequence[Substrate]) -> None:
    from excise.measure.study import close

    await close(substrates)


async def _serve(
    stack: AsyncExitStack, prepared: Mapping[str, Prepared], substrates: Iterable[Substrate]
) -> dict[str, GitServer]:
    """One git server per address at which sandboxes reach this host, on that address only."""
    if not prepared:
        return {}
    addresses = dict.fromkeys([LOOPBACK, *[await address_of_host(s) for s in substrates]])
    repositories = {task: p.git_dir for task, p in prepared.items()}
    return {
        address: await stack.enter_async_context(GitServer(repositories, host=address))
        for address in addresses
    }


async def _references(
    workloads: Mapping[str, Workload],
    supplies: Supplies,
    clock: Clock,
    facts: host.Facts,
    progress: Progress,
) -> dict[str, Reference]:
    """The goldens of every workload, from the bare process."""
    bare = registry.open_substrate("local")
    tools = f"{facts['bash']} {facts['git']} {facts['system']}"
    found = {}
    for name, listed in workloads.items():
        spec, site = await stock(bare, listed, supplies)
        prepared = supplies.prepared.get(listed.task or "")
        cell = Cell(label=plan.BARE, substrate="local", workload=name)
        setting = Setting(cell, bare, listed, spec, site, prepared.tree if prepared else None)
        python = host.interpreter(prepared.python) if prepared else ""
        known = published_for(name, _published(supplies.prepared))
        found[name] = await reference(
            setting,
            clock=clock,
            cache=cache.root(),
            interpreter=python,
            tools=tools,
            published=known.sha256 if known else None,
        )
        if not found[name].cached:
            progress.say(f"recorded what {name} must give")
    await _close((bare,))
    return found


async def _setting(
    cell: Cell,
    substrate: Substrate,
    listed: Workload,
    supplies: Supplies,
    references: Mapping[str, Reference],
) -> Setting:
    spec, site = await stock(substrate, listed, supplies)
    prepared = supplies.prepared.get(listed.task or "")
    return Setting(
        cell,
        substrate,
        listed,
        spec,
        site,
        tree=prepared.tree if prepared else None,
        goldens=references[cell.workload].goldens,
    )


async def _described(
    cells: Sequence[Cell],
    opened: Mapping[tuple[str, tuple[tuple[str, str], ...]], Substrate],
    settings: Mapping[str, Setting],
    clock: Clock,
) -> dict[str, dict[str, str]]:
    """By label: the isolation, what the substrate says of itself, and what one of its sandboxes sees of its limits."""
    said = {}
    for cell in cells:
        substrate = opened[_key(cell)]
        if cell.label not in said:
            own = await substrate.describe() if isinstance(substrate, Describes) else {}
            seen = await inside.look(substrate, settings[cell.name].spec, clock)
            own |= {f"{inside.SEEN}{name}": value for name, value in seen.items()}
            programs = {} if _of_this_host(substrate) else {"programs": OWN_PROGRAMS}
            said[cell.label] = {"isolation": substrate.isolation.name.lower(), **programs, **own}
    return said


def _of_this_host(substrate: Substrate) -> bool:
    """Whether sandboxes run the programs of the bare process: they are stocked with them, or see them."""
    return isinstance(substrate, ImportsImages | SpawnsItself | fake.Fake)


def _refuse_other_goldens(resumed: StudyRecord | None, references: Mapping[str, Reference]) -> None:
    for name, digest in (resumed.references if resumed else {}).items():
        if references[name].digest != digest:
            raise InputError(
                f"{name} gives other observations now than when this study was begun "
                "(another Python, git or task?): choose another --out"
            )
