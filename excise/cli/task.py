"""`excise task`: list, show, prepare and verify the bug fixes that workloads act on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from excise.tasks.descriptor import Prepared, Task
    from excise.tasks.verify import Verdict

task = typer.Typer(name="task", help="The bug fixes that workloads act on.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A task's name, or the path of a descriptor file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
History = Annotated[
    str, typer.Option(help="single: one commit; releases: older ones below it; origin: upstream's.")
]


@task.command("list")
def list_tasks(*, as_json: Json = False) -> int:
    """Say which tasks come with Excise."""
    from excise.tasks import load

    rows = [_row(load.task(name)) for name in load.names()]
    if as_json:
        typer.echo(json.dumps({"tasks": rows}, indent=2))
    else:
        _print(rows)
    return 0


@task.command("show")
def show(name: Name) -> int:
    """Print a task's checked descriptor as JSON."""
    import msgspec

    from excise.tasks import load

    typer.echo(msgspec.json.format(msgspec.json.encode(load.task(name)), indent=2).decode())
    return 0


@task.command("prepare")
def prepare(name: Name, *, history: History = "single", as_json: Json = False) -> int:
    """Rebuild a task from released sources, prove it, and say where it is."""
    prepared = _prepare(name, history)
    places = {
        "task": prepared.task.id,
        "commit": prepared.commit,
        "tree": prepared.tree,
        "git_dir": str(prepared.git_dir),
        "checkout": str(prepared.checkout),
        "python": prepared.python,
    }
    if as_json:
        typer.echo(json.dumps(places, indent=2))
    else:
        for key, value in places.items():
            typer.echo(f"{key:9} {value}")
    return 0


@task.command("verify")
def verify(
    name: Name,
    *,
    substrate: Annotated[
        str, typer.Option(help="Where to run the tests: NAME or NAME:key=value.")
    ] = "local",
    history: History = "single",
    as_json: Json = False,
) -> int:
    """Redo the proof: the named tests fail before the fix and pass after it; exit code 1 if not."""
    import asyncio

    prepared = _prepare(name, history)
    verdict = asyncio.run(_verify(prepared, substrate))
    typer.echo(json.dumps(_as_json(verdict), indent=2) if as_json else _line(verdict))
    for problem in verdict.problems:
        typer.echo(f"excise: {verdict.task} is refused: {problem}", err=True)
    return 1 if verdict.problems else 0


def _prepare(name: str, history: str) -> Prepared:
    from typing import cast

    from excise.tasks import forge, load

    return forge.prepare(load.task(name), history=cast("forge.History", history))


async def _verify(prepared: Prepared, name: str) -> Verdict:
    from excise.measure.stock import Supplies, address_of_host, stock
    from excise.substrates import registry
    from excise.substrates.base import Closes
    from excise.tasks import cache
    from excise.tasks.serve import GitServer
    from excise.tasks.verify import verify as prove
    from excise.types import Limits
    from excise.workloads.catalogue import workload

    known, options = registry.parse(name)
    opened = registry.open_substrate(known, **options)
    tasks = {prepared.task.id: prepared}
    try:
        host = await address_of_host(opened)
        async with GitServer({prepared.task.id: prepared.git_dir}, host=host) as server:
            supplies = Supplies(tasks, {host: server}, cache.root() / "images", Limits())
            repair = workload(f"T2:{prepared.task.id}", tasks)
            return await prove(prepared, opened, *await stock(opened, repair, supplies))
    finally:
        if isinstance(opened, Closes):
            await opened.close()


def _line(verdict: Verdict) -> str:
    fixed = sum(len(found.fail_to_pass) for found in verdict.found)
    kept = sum(len(found.pass_to_pass) for found in verdict.found)
    times = (
        f"clone {verdict.clone_s:.2f} s, tests {verdict.before_s:.2f} and {verdict.after_s:.2f} s"
    )
    return (
        f"{verdict.task} on {verdict.substrate}: tests that go from failing to passing: {fixed}, "
        f"that pass before and after: {kept} ({times})"
    )


def _as_json(verdict: Verdict) -> dict[str, Any]:
    checks = [
        {
            "path": found.check.path,
            "fail_to_pass": sorted(found.fail_to_pass),
            "pass_to_pass": len(found.pass_to_pass),
            "failed_after": sorted(found.after.failed),
        }
        for found in verdict.found
    ]
    return {
        "task": verdict.task,
        "substrate": verdict.substrate,
        "ok": not verdict.problems,
        "problems": list(verdict.problems),
        "checks": checks,
        "clone_s": verdict.clone_s,
        "before_s": verdict.before_s,
        "after_s": verdict.after_s,
    }


def _row(task: Task) -> dict[str, Any]:
    return {
        "name": task.id,
        "package": task.package,
        "base": task.base.version,
        "fixed": task.fixed.version,
        "licence": task.licence,
        "fail_to_pass": sum(len(check.fail_to_pass) for check in task.checks),
        "pass_to_pass": sum(check.pass_to_pass for check in task.checks),
        "cycles": len(task.cycles),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("name", "releases", "licence"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fixed", "kept"):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = (str(row["fail_to_pass"]), str(row["pass_to_pass"]))
        releases = f"{row['package']} {row['base']} to {row['fixed']}"
        table.add_row(row["name"], releases, row["licence"], *counts)
    Console().print(table)
