"""Each layer imports only from those before it; the pure ones touch no clock, disk, socket or process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "excise"

POOL_DECISIONS = (
    "excise.pools.stage",
    "excise.pools.demand",
    "excise.pools.size",
    "excise.pools.plan",
    "excise.pools.fitness",
    "excise.pools.failures",
    "excise.pools.window",
    "excise.pools.counts",
)

AGENT_WORDS = tuple(
    f"excise.agent.{name}"
    for name in (
        "wire", "errors", "frames", "messages", "answers", "mux", "procedures", "files", "hold",
        "observation",
    )
)  # fmt: skip

AGENT_EDGES = tuple(
    f"excise.agent.{name}"
    for name in (
        "binary", "transfer", "channel", "running", "connection",
        "async_channel", "async_running", "async_connection",
    )
)  # fmt: skip

JAIL_WORDS = tuple(
    f"excise.jail.{name}"
    for name in ("control", "ids", "phase", "destinations", "firewall", "uplink")
)

SERVICE_DECISIONS = tuple(
    f"excise.service.{name}"
    for name in (
        "errors", "problems", "sandbox", "keys", "people", "policy", "templates", "admission",
        "rates", "heads",
    )
)  # fmt: skip

LAYERS: list[tuple[str, ...]] = [
    ("excise.types", "excise.errors", "excise.clock", "excise.noting"),
    (
        "excise.lifecycle",
        "excise.tax",
        "excise.tasks.descriptor",
        "excise.workloads",
        *POOL_DECISIONS,
        "excise.scheduler",
        "excise.agent",
        *JAIL_WORDS,
    ),
    (
        "excise.substrates.base",
        "excise.substrates.capture",
        "excise.substrates.script",
        "excise.substrates.shell",
    ),
    (
        *AGENT_EDGES,
        "excise.jail",
        "excise.session",
        "excise.blocking",
        "excise.layers",
        "excise.tasks",
        "excise.substrates",
        "excise.warm",
    ),
    ("excise.measure", "excise.pools"),
    ("excise.report", "excise.service"),
    ("excise.cli", "excise.__main__"),
]
PURE = (
    "excise.lifecycle",
    "excise.tax",
    "excise.tasks.descriptor",
    "excise.workloads",
    *POOL_DECISIONS,
    "excise.scheduler",
    *AGENT_WORDS,
    *JAIL_WORDS,
    "excise.substrates.capture",
    "excise.substrates.script",
    "excise.substrates.shell",
    "excise.substrates.inside.habits",
    *SERVICE_DECISIONS,
    "excise.substrates.vm.config",
    "excise.substrates.vm.initrd",
    "excise.substrates.vm.lines",
    "excise.substrates.vm.qemu_line",
    "excise.substrates.vm.cloud.readiness",
    "excise.substrates.vm.cloud.control",
    "excise.substrates.hosted.faults",
    "excise.substrates.hosted.lines",
    "excise.substrates.hosted.options",
    "excise.substrates.hosted.cloud",
    "excise.substrates.remote.wire",
    "excise.substrates.remote.convert",
    "excise.substrates.remote.replies",
    "excise.substrates.remote.requests",
    "excise.layers.images.documents",
    "excise.layers.images.entry",
    "excise.layers.images.reference",
    "excise.layers.images.sparse",
    "excise.layers.images.tarheader",
    "excise.layers.images.tarstream",
)
IMPURE = {
    "os",
    "time",
    "asyncio",
    "socket",
    "subprocess",
    "logging",
    "threading",
    "shutil",
}
SHARED_BY_DRIVERS = {"base", "capture", "script", "shell", "inside"}

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def below(module: str, roots: tuple[str, ...]) -> str | None:
    """The longest of `roots` that holds `module`."""
    holding = [r for r in roots if module == r or module.startswith(r + ".")]
    return max(holding, key=len, default=None)


def layer_of(module: str) -> int | None:
    roots = tuple(root for layer in LAYERS for root in layer)
    home = below(module, roots)
    return next((i for i, layer in enumerate(LAYERS) if home in layer), None)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_imports_only_from_its_own_layer_and_those_before(path: Path) -> None:
    mine = layer_of(module_of(path))
    if module_of(path) == "excise":
        return
    assert mine is not None, f"{module_of(path)} belongs to no layer: name it in LAYERS"
    for name in imports_of(path):
        if name.startswith("excise."):
            theirs = layer_of(name)
            assert theirs is None or theirs <= mine, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_pure_module_touches_nothing_outside(path: Path) -> None:
    if below(module_of(path), PURE):
        impure = {n.split(".")[0] for n in imports_of(path)} & IMPURE
        assert not impure, f"{module_of(path)} decides; {sorted(impure)} belong to the edges"


@pytest.mark.parametrize("path", sorted((PACKAGE / "substrates").glob("*.py")), ids=module_of)
def test_substrates_do_not_import_each_other(path: Path) -> None:
    others = {f.stem for f in (PACKAGE / "substrates").glob("*.py")} - SHARED_BY_DRIVERS
    others -= {"__init__", path.stem}
    imported = {n.split(".")[2] for n in imports_of(path) if n.startswith("excise.substrates.")}
    clash = {n for n in imported & others if not _same_family(path.stem, n)}
    assert not clash, f"{path.name} imports {sorted(clash)}"


def _same_family(mine: str, theirs: str) -> bool:
    """Several files of one driver carry its name: `container_exec.py` is part of `container.py`."""
    return mine.startswith(theirs) or theirs.startswith(mine)
