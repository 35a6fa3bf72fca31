"""`excise sweep`: remove what killed owners left on this host, and on the engines that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.errors import SubstrateError

NOT_HERE = ("fake", "jail", "service")
"""Nothing to sweep, swept by itself, and swept where it runs."""


def sweep(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what of jails would be removed, and remove nothing."),
    ] = False,
) -> int:
    """Remove what was left by owners that are dead: jails, directories, containers. Living ones are never touched."""
    import asyncio
    import json
    from dataclasses import asdict

    from excise.jail.sweep import sweep as sweep_jails

    swept = sweep_jails(dry_run=dry_run)
    found, failed = ({}, []) if dry_run else asyncio.run(_everywhere())
    for error in failed:
        typer.echo(f"excise: could not look: {error}", err=True)
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, **asdict(swept), "sandboxes": found}))
        return bool(failed)
    counts = [f"{count} {what}" for what, count in asdict(swept).items() if count]
    counts += [f"{count} of {name}" for name, count in found.items() if count]
    done = "would remove" if dry_run else "removed"
    typer.echo(f"{done} {', '.join(counts)}" if counts else "nothing is left behind")
    return bool(failed)


async def _everywhere() -> tuple[dict[str, int], list[SubstrateError]]:
    """How many sandboxes were removed, by substrate, wherever one can be used from here; and where that failed.

    One after the other: several names stand for one engine, and the first of them removes all that is left there.
    """
    from excise.errors import SubstrateError
    from excise.substrates import registry
    from excise.substrates.base import Closes, Sweeps

    found: dict[str, int] = {}
    failed: list[SubstrateError] = []
    for name in registry.names():
        if name in NOT_HERE or not (await registry.availability(name)).usable:
            continue
        substrate = registry.open_substrate(name)
        try:
            if isinstance(substrate, Sweeps):
                found[name] = await substrate.sweep()
        except SubstrateError as error:
            failed.append(error)
        finally:
            if isinstance(substrate, Closes):
                await substrate.close()
    return found, failed
