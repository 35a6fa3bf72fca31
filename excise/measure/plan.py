"""What to run in which order: complete randomised blocks, fixed before the first trial. Pure.

In each block every cell appears once, in an order drawn from the seed; a cell with fewer blocks appears in
the first of them. Warm-ups are blocks with negative numbers: run first, kept in the data, not counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from excise.errors import InputError
from excise.measure.record import Cache, Cell

BARE = "bare"
TWIN = "bare-again"
"""The A/A twin: the same substrate under a second label, whose ratio to the first must be 1."""

TASK = "attrs-1417"


@dataclass(frozen=True, slots=True)
class Preset:
    """How many blocks, of which workloads. `{task}` stands for each task of the study."""

    name: str
    blocks: int
    warm_ups: int
    workloads: tuple[str, ...]
    fewer: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By workload: its own number of blocks and of warm-ups."""
    untwinned: tuple[str, ...] = ()
    """Workloads too long to be run a second time for the A/A gate."""
    quiet_s: float = 30.0
    """The longest wait before a trial for the machine to become quiet."""


EVERYTHING = ("T0", "T0x300", "T1:{task}", "T2:{task}", "K10:{task}", "K50:{task}", "K150:{task}")

PRESETS = {
    p.name: p
    for p in (
        Preset(
            "smoke",
            blocks=5,
            warm_ups=1,
            workloads=("T0", "T1:{task}", "T2:{task}", "K10:{task}", "K50:{task}", "K150:{task}"),
            fewer={"K10:{task}": (3, 0), "K50:{task}": (2, 0), "K150:{task}": (3, 0)},
            untwinned=("K10:{task}", "K50:{task}", "K150:{task}"),
            quiet_s=0.2,
        ),
        Preset(
            "quick",
            blocks=30,
            warm_ups=3,
            workloads=EVERYTHING,
            fewer={"T0x300": (10, 1), "K150:{task}": (10, 1)},
            untwinned=("T0x300", "K150:{task}"),
            quiet_s=5.0,
        ),
        Preset(
            "paper",
            blocks=100,
            warm_ups=3,
            workloads=EVERYTHING,
            fewer={"T0x300": (30, 1)},
        ),
        Preset(
            "tail", blocks=400, warm_ups=3, workloads=("T0", "T0x300"), fewer={"T0x300": (30, 1)}
        ),
    )
}


def preset(name: str) -> Preset:
    """A preset by name."""
    try:
        return PRESETS[name]
    except KeyError:
        raise InputError(f"no preset {name!r}; there are {', '.join(PRESETS)}") from None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A substrate that takes part, under the label that its figures carry."""

    label: str
    substrate: str
    options: Mapping[str, str] = field(default_factory=dict)


def cells(
    chosen: Sequence[Chosen],
    preset: Preset,
    *,
    tasks: Sequence[str] = (TASK,),
    workloads: Sequence[str] = (),
    twin: bool = True,
    caches: Sequence[Cache] = ("warm",),
) -> tuple[Cell, ...]:
    """All cells: the bare baseline on every workload, its A/A twin, and every chosen substrate, in each cache state.

    Warm cells are always there: work is what a bare process takes with a warm cache.
    """
    with_bare = [Chosen(BARE, "local"), *(c for c in chosen if c.label != BARE)]
    _refuse_twice(c.label for c in with_bare)
    made: list[Cell] = []
    for pattern, name in _named(workloads or preset.workloads, tasks):
        blocks, warm_ups = preset.fewer.get(pattern, (None, None))
        everywhere = list(with_bare)
        if twin and pattern not in preset.untwinned:
            everywhere.insert(1, Chosen(TWIN, "local"))
        made += [
            Cell(
                label=c.label,
                substrate=c.substrate,
                options=dict(c.options),
                workload=name,
                blocks=None if blocks is None else min(blocks, preset.blocks),
                warm_ups=warm_ups,
                cache=cache,
            )
            for cache in dict.fromkeys(("warm", *caches))
            for c in everywhere
            if cache == "warm" or c.label != TWIN
        ]
    return tuple(made)


def warmed(preset: Preset, warm_ups: int) -> Preset:
    """The preset with so many warm-ups, and where it has fewer itself, with those."""
    fewer = {name: (blocks, min(own, warm_ups)) for name, (blocks, own) in preset.fewer.items()}
    return replace(preset, warm_ups=warm_ups, fewer=fewer)


def fewer(cells: Sequence[Cell], most: Mapping[str, int], blocks: int) -> tuple[Cell, ...]:
    """The cells of the substrates named take part in so many blocks at most, the first ones."""
    return tuple(
        structs.replace(c, blocks=min(most[c.label], blocks if c.blocks is None else c.blocks))
        if c.label in most
        else c
        for c in cells
    )


def load_cells(
    chosen: Sequence[Chosen], loads: Sequence[str], workloads: Sequence[str] = ("T0",)
) -> tuple[Cell, ...]:
    """Every substrate under every load shape, the bare process too."""
    with_bare = [Chosen(BARE, "local"), *(c for c in chosen if c.label != BARE)]
    return tuple(
        Cell(
            label=c.label,
            substrate=c.substrate,
            options=dict(c.options),
            workload=workload,
            load=shape,
        )
        for workload in workloads
        for shape in loads
        for c in with_bare
    )


def _named(patterns: Sequence[str], tasks: Sequence[str]) -> list[tuple[str, str]]:
    """Each pattern with each task in it, once."""
    named = {
        pattern.replace("{task}", task): pattern
        for pattern in patterns
        for task in (tasks if "{task}" in pattern else tasks[:1] or ("",))
    }
    return [(pattern, name) for name, pattern in named.items()]


def _refuse_twice(labels: Iterable[str]) -> None:
    seen: set[str] = set()
    for label in labels:
        if label in seen or label == TWIN:
            raise InputError(f"the label {label!r} stands for two substrates: name each once")
        seen.add(label)


@dataclass(frozen=True, slots=True)
class Slot:
    """One trial that is to be run."""

    session: int
    block: int
    position: int
    cell: Cell
    seed: int

    @property
    def warm_up(self) -> bool:
        return self.block < 0

    @property
    def key(self) -> tuple[int, int, str]:
        return (self.session, self.block, self.cell.name)


def moment_s(slot: Slot, interval_s: float) -> float:
    """When to begin within an interval of a platform that looks around once in each: trials one after the other
    would fall into step with it, and find it always early or always late.
    """
    return random.Random(f"moment/{slot.seed}").uniform(0.0, interval_s)  # noqa: S311 - no secret


def slots(
    cells: Sequence[Cell], *, blocks: int, warm_ups: int, seed: int, session: int = 1
) -> tuple[Slot, ...]:
    """Every trial of the study, in the order it is to be run."""
    made: list[Slot] = []
    for block in range(-_most_warm_ups(cells, warm_ups), blocks):
        here = [c for c in cells if c.load is None and _appears(c, block, blocks, warm_ups)]
        drawn = random.Random(f"{seed}/{session}/{block}")  # noqa: S311 - an order, not a secret
        drawn.shuffle(here)
        made += [
            Slot(session, block, position, cell, drawn.getrandbits(32))
            for position, cell in enumerate(here)
        ]
    return tuple(made)


def _appears(cell: Cell, block: int, blocks: int, warm_ups: int) -> bool:
    if block < 0:
        return -block <= (warm_ups if cell.warm_ups is None else cell.warm_ups)
    return block < (blocks if cell.blocks is None else cell.blocks)


def _most_warm_ups(cells: Sequence[Cell], warm_ups: int) -> int:
    return max((warm_ups if c.warm_ups is None else c.warm_ups for c in cells), default=0)
