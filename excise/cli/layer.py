"""`excise layer`: what environments are made of, as it lies in this host's store."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from excise.layers.store import Layer, Store

layer = typer.Typer(
    name="layer",
    help="The layers that environments are made of: list, build, check, remove.",
    no_args_is_help=True,
)

_SHOWN = 14
"""Of what a layer is of: more would break lines on a narrow terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Names = Annotated[list[str], typer.Argument(help="Layers, each by its id or how that begins.")]
Some = Annotated[
    list[str] | None, typer.Argument(help="Layers, each by its id or how that begins; else all.")
]


@layer.command("list")
def list_layers(*, as_json: Json = False) -> int:
    """Say which layers are here, what they take and when they were last used."""
    store = open_store()
    rows = [_row(store, each) for each in store.layers()]
    damaged = store.damaged()
    if as_json:
        typer.echo(json.dumps({"layers": rows, "damaged": list(damaged)}, indent=2))
    else:
        _print(rows)
    for key in damaged:
        typer.echo(f"excise: layer {key[:12]} is damaged; `excise layer gc` removes it", err=True)
    return 0


@layer.command("du")
def du(*, as_json: Json = False) -> int:
    """Say how much the store takes, how much of it is in use now, and how much disk is free."""
    from dataclasses import asdict

    store = open_store()
    usage = {"store": str(store.root), **asdict(store.du())}
    if as_json:
        typer.echo(json.dumps(usage, indent=2))
        return 0
    for name, value in usage.items():
        shown = _size(value) if name.endswith("bytes") and isinstance(value, int) else value
        typer.echo(f"{name.replace('_bytes', ''):10} {shown}")
    return 0


@layer.command("gc")
def gc(
    budget: Annotated[
        str,
        typer.Option(help="What may stay, such as 20GiB. Without it, only what is damaged goes."),
    ] = "",
    *,
    as_json: Json = False,
) -> int:
    """Remove what killed builds left, what is damaged, and layers over the budget, the cheapest to rebuild first."""
    from excise.layers.budget import size_in_bytes

    limit = size_in_bytes(budget) if budget else sys.maxsize
    store = open_store()
    gone = store.gc(limit)
    usage = store.du()
    if as_json:
        typer.echo(json.dumps({"removed": list(gone), "bytes": usage.bytes}, indent=2))
    else:
        typer.echo(f"removed {len(gone)} layers; {usage.layers} stay and take {_size(usage.bytes)}")
    if usage.bytes > limit:
        typer.echo(f"excise: over the budget by what is in use or kept: {budget}", err=True)
        return 1
    return 0


@layer.command("rm")
def rm(names: Names) -> int:
    """Remove layers that are not in use and that none stands on."""
    store = open_store()
    for each in [store.find(name) for name in names]:
        store.remove(each)
        typer.echo(f"removed {each.short}")
    return 0


@layer.command("verify")
def verify(names: Some = None, *, as_json: Json = False) -> int:
    """Read layers whole and hold them against their digests; exit code 1 if one has changed."""
    store = open_store()
    wanted = [store.find(name) for name in names] if names else list(store.layers())
    changed = [each.id for each in wanted if not _is_as_built(store, each)]
    damaged = [] if names else list(store.damaged())
    if as_json:
        report = {"checked": len(wanted), "changed": changed, "damaged": damaged}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{len(wanted) - len(changed)} of {len(wanted)} layers are as they were built")
    for key in changed:
        typer.echo(
            f"excise: layer {key[:12]} has changed; remove it: excise layer rm {key[:12]}", err=True
        )
    for key in damaged:
        typer.echo(f"excise: layer {key[:12]} is damaged; `excise layer gc` removes it", err=True)
    return 1 if changed or damaged else 0


def _is_as_built(store: Store, each: Layer) -> bool:
    """One that another process removes meanwhile has not changed."""
    return store.verify(each) or each.id not in {there.id for there in store.layers()}


def open_store() -> Store:
    from excise.layers.store import Store

    return Store()


def tell(store: Store, built: list[Layer], as_json: bool) -> int:
    if as_json:
        typer.echo(json.dumps({"layers": [_row(store, each) for each in built]}, indent=2))
    else:
        for each in built:
            typer.echo(
                f"{each.short}  {each.facts.kind:9} {_size(each.facts.bytes):>9}  {each.path}"
            )
    return 0


def _row(store: Store, each: Layer) -> dict[str, Any]:
    facts = each.facts
    return {
        "id": each.id,
        "kind": facts.kind,
        "of": _subject(facts.recipe),
        "bytes": facts.bytes,
        "entries": facts.entries,
        "build_s": facts.build_s,
        "made_at": facts.made_at,
        "last_used": store.last_used(each),
        "parents": list(each.parents),
        "digest": facts.digest,
        "path": str(each.path),
    }


def _subject(recipe: dict[str, Any]) -> str:
    """What a reader would call the layer."""
    for name in ("commit", "reference", "diff_id", "digest"):
        if isinstance(recipe.get(name), str):
            return str(recipe[name])
    for name in ("requirements", "packages"):
        if isinstance(recipe.get(name), list):
            return " ".join(str(part).split(" ")[0] for part in recipe[name])
    return str(recipe.get("at") or recipe.get("installer") or "")


def _print(rows: list[dict[str, Any]]) -> None:
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("layer", "kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("size", "files", "built in"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("last used", no_wrap=True)
    table.add_column("what", no_wrap=True)
    for row in rows:
        used = datetime.fromtimestamp(row["last_used"]).astimezone().strftime("%Y-%m-%d")
        size, took = _size(row["bytes"]), f"{row['build_s']:.1f} s"
        what = Text(row["of"][:_SHOWN])  # somebody's text: no markup in it is ours
        table.add_row(row["id"][:12], row["kind"], size, f"{row['entries']}", took, used, what)
    Console().print(table)


def _size(count: int) -> str:
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
