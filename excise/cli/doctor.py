"""`excise doctor`: which substrates work on this host, and what would make the others work."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say of every substrate whether it works here, why not, and what to do about it."""
    import asyncio
    import json

    rows = asyncio.run(_examine())
    if as_json:
        typer.echo(json.dumps({"substrates": rows}, indent=2))
    else:
        _print(rows)
    return 0


async def _examine() -> list[dict[str, Any]]:
    from excise.substrates import registry

    return [await _row(name) for name in registry.names()]


async def _row(name: str) -> dict[str, Any]:
    from excise.substrates import registry
    from excise.substrates.base import Availability

    isolation: str | None = None
    try:
        available = await registry.availability(name)
        if available.usable:
            isolation = registry.open_substrate(name).isolation.name.lower()
    except Exception as error:  # noqa: BLE001  (somebody's plug-in: the others are still examined)
        text = f"its own check failed: {type(error).__name__}: {error}"
        available = Availability(False, text, None)
    return {
        "name": name,
        "usable": available.usable,
        "isolation": isolation,
        "reason": available.reason,
        "remedy": available.remedy,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("substrate", "usable", "isolation"):
        table.add_column(heading, no_wrap=True)
    table.add_column("why, and what to do", overflow="fold")
    for row in rows:
        why = Text(row["reason"])
        if row["remedy"] and not row["usable"]:
            why.append(f"\nrun: {row['remedy']}", style="bold")
        usable = Text("yes", "green") if row["usable"] else Text("no", "red")
        table.add_row(row["name"], usable, row["isolation"] or "-", why)
    Console().print(table)
