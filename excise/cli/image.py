"""`excise image`: have images here, and see which are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from excise.layers.images.image import Image, Record

image = typer.Typer(name="image", help="Images to run sandboxes from.", no_args_is_help=True)

Ref = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE",
        help="NAME[:TAG], docker://REGISTRY/NAME, dir:, oci:, oci-archive:, docker-archive:/PATH, docker-daemon:NAME.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@image.command("pull")
def pull(
    reference: Ref,
    *,
    cached: Annotated[
        bool, typer.Option("--cached", help="Take what the last pull brought; ask nobody.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Fetch an image, verify it, and unpack what is not here yet into the layer store."""
    from excise.layers.images.pull import pull as fetch
    from excise.layers.store import Store

    found = fetch(Store(), reference, cached=cached)
    if as_json:
        typer.echo(json.dumps(_row(found), indent=2))
    else:
        size = f"{found.bytes / 1e6:.1f} MB"
        typer.echo(f"{found.reference}  {found.digest}  {len(found.layers)} layers  {size}")
    return 0


@image.command("list")
def list_images(*, as_json: Json = False) -> int:
    """Say which images are here whole."""
    from excise.layers.images.image import images
    from excise.layers.store import Store

    rows = [_listed(found, record) for found, record in images(Store())]
    if as_json:
        typer.echo(json.dumps({"images": rows}, indent=2))
    else:
        _print(rows)
    return 0


@image.command("inspect")
def inspect(reference: Ref) -> int:
    """Print what a pulled image says of itself, and where its layers are, as JSON."""
    from excise.layers.images.pull import pull as fetch
    from excise.layers.store import Store

    found = fetch(Store(), reference, cached=True)
    config = found.config
    process = {
        "env": dict(config.env),
        "user": config.user,
        "workdir": config.workdir,
        "entrypoint": list(config.entrypoint),
        "cmd": list(config.cmd),
        "volumes": list(config.volumes),
        "labels": dict(config.labels),
    }
    layers = [
        {"id": layer.id, "path": str(layer.path), "bytes": layer.facts.bytes} | layer.facts.notes
        for layer in found.layers
    ]
    whole = _row(found) | {"platform": str(config.platform), "config": process, "layers": layers}
    typer.echo(json.dumps(whole, indent=2))
    return 0


def _row(found: Image) -> dict[str, Any]:
    return {
        "reference": found.reference,
        "digest": found.digest,
        "layers": [layer.id for layer in found.layers],
        "bytes": found.bytes,
    }


def _listed(found: Image, record: Record) -> dict[str, Any]:
    return _row(found) | {"pulled_at": record.pulled_at}


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("image", overflow="fold")
    table.add_column("digest", no_wrap=True)
    for heading in ("layers", "MB"):
        table.add_column(heading, justify="right")
    for row in rows:
        digest = row["digest"].removeprefix("sha256:")[:12]
        table.add_row(
            row["reference"], digest, str(len(row["layers"])), f"{row['bytes'] / 1e6:.1f}"
        )
    Console().print(table)
