"""`excise study`: run, go on with, list, compare, merge and export studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.measure.diff import Change
    from excise.measure.progress import Progress
    from excise.measure.store import Study
    from excise.tax.interval import Interval

study = typer.Typer(
    name="study", help="Measure the tax: many trials in random order.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@study.command("run")
def run(
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory of the study; an unfinished one in it is gone on with."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="smoke, quick, paper or tail. [default: smoke]")
    ] = None,
    substrate: Annotated[
        list[str] | None,
        typer.Option(
            help="Beside the bare process, as NAME or NAME:key=value; repeatable. "
            "[default: jail and docker, where they are usable]"
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Such as T2:attrs-1417; repeatable. [default: the preset's]"),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Task of the preset's workloads, a name or a file; repeatable. "
            "[default: attrs-1417]"
        ),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            help="Load: burst:32, staggered:100, poisson:N:RATE, wave:B:N:S or closed:W:N; alone, without a "
            "preset's trials."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the order. [default: drawn]")] = None,
    blocks: Annotated[int | None, typer.Option(min=1, help="In place of the preset's.")] = None,
    cache: Annotated[
        list[str] | None,
        typer.Option(
            help="cold-page: every cell also with the host's page cache dropped before each trial."
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="vCPUs and GiB of a sandbox, such as 2x4. [default: 1x2]")
    ] = None,
    warm_ups: Annotated[
        int | None, typer.Option(min=0, help="Of every cell, at most. [default: the preset's]")
    ] = None,
    fewer: Annotated[
        list[str] | None,
        typer.Option(
            help="SUBSTRATE=N: one so slow that it takes part in the first N blocks only; repeatable."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Cut the blocks to what fits, judged by how long the first one took. [default: all]"
        ),
    ] = None,
    forgiving: Annotated[
        bool,
        typer.Option(
            "--forgiving",
            help="Leave out, and name, a substrate on a workload that no sandbox of it can be made for.",
        ),
    ] = False,
    stop_after: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop for now once one substrate has failed so often in a row. [default: go on]",
        ),
    ] = None,
    open_report: Annotated[
        bool,
        typer.Option(
            "--open-report",
            help="At the end open the report in a browser; its path is printed in any case.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a study, or go on with the one in --out; ends with the table and the report."""
    import asyncio
    import sys

    from excise.measure.conduct import conduct
    from excise.measure.decide import Asked
    from excise.measure.progress import Silent, for_stream
    from excise.measure.study import Stopped

    asked = Asked(
        substrates=tuple(substrate or ()),
        workloads=tuple(workload or ()),
        tasks=tuple(task or ()),
        loads=tuple(load or ()),
        preset=preset,
        seed=seed,
        blocks=blocks,
        size=size,
        caches=tuple(cache or ()),
        warm_ups=warm_ups,
        fewer=tuple(fewer or ()),
    )
    directory = out or _fresh()
    progress: Progress = Silent() if as_json else for_stream(sys.stderr)
    try:
        found = asyncio.run(
            conduct(
                asked,
                directory,
                progress,
                stop_after=stop_after,
                minutes=minutes,
                forgiving=forgiving,
            )
        )
    except Stopped as why:
        typer.echo(f"excise: {why}", err=True)
        _stopped(directory)
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(_stopped(directory)) from None
    _conclude(found, directory, open_report=open_report, as_json=as_json)
    if not any(t.outcome == "ok" for t in found.trials):
        raise typer.Exit(_nothing_came_through(found, directory))


def _nothing_came_through(found: Study, directory: Path) -> int:
    """A failed trial is a record; a study of nothing else is a failed job."""
    why = next((t.error.message for t in found.trials if t.error is not None), "no trial was run")
    typer.echo(
        f"excise: none of {len(found.trials)} trials came through ({why.splitlines()[0]}); "
        f"all are in {directory}",
        err=True,
    )
    return 1


def _fresh() -> Path:
    from datetime import UTC, datetime

    return Path("runs") / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def _stopped(directory: Path) -> int:
    """What a study that was stopped says; its records are all valid."""
    from excise.measure.conduct import planned_trials
    from excise.measure.store import HEAD, read_study

    if (directory / HEAD).exists():
        found = read_study(directory)
        typer.echo(
            f"stopped after {len(found.trials)} of {planned_trials(found.record)} trials; "
            f"go on with: excise study run --out {directory}",
            err=True,
        )
    else:
        typer.echo("stopped before the first trial; nothing was written", err=True)
    return 130


def _conclude(found: Study, directory: Path, *, open_report: bool, as_json: bool) -> None:
    """The table and the report."""
    if as_json:
        typer.echo(json.dumps(_row(found, directory)))
        return
    from excise.cli import report

    made, summary = report.write(directory)
    report.show(summary, made)
    if not open_report:
        return
    if _somebody_watches():
        import webbrowser

        webbrowser.open(made[0].resolve().as_uri())
    else:
        typer.echo("there is no display to open the report on", err=True)


def _somebody_watches() -> bool:
    """A browser on a machine without a display would take over the terminal."""
    import os

    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@study.command("list")
def list_studies(
    directory: Annotated[
        Path | None, typer.Argument(help="Where studies are looked for. [default: runs]")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the studies in a directory: how far they are and what failed."""
    from excise.errors import InputError
    from excise.measure.store import HEAD, read_study

    if directory is not None and not directory.is_dir():
        raise InputError(f"{directory} is no directory: name one that holds studies")
    directory = directory or Path("runs")
    rows = []
    for head in sorted(directory.glob(f"*/{HEAD}")) + sorted(directory.glob(HEAD)):
        try:
            rows.append(_row(read_study(head.parent), head.parent))
        except InputError as error:
            typer.echo(f"excise: {error}", err=True)
    if as_json:
        typer.echo(json.dumps(rows))
        return
    if not rows:
        typer.echo(f"no study in {directory}; make one with: excise study run")
        return
    heads = ("directory", "started", "preset", "labels", "done", "planned", "failed")
    _print_table(heads, [tuple(str(row[h]) for h in heads) for row in rows])


def _row(found: Study, directory: Path) -> dict[str, object]:
    from excise.measure.conduct import planned_trials

    record = found.record
    return {
        "directory": str(directory),
        "id": record.id,
        "started": record.started,
        "preset": record.preset,
        "labels": " ".join(dict.fromkeys(c.label for c in record.cells)),
        "done": len(found.trials),
        "planned": planned_trials(record),
        "failed": sum(t.outcome != "ok" for t in found.trials),
    }


@study.command("diff")
def diff_studies(
    before: Annotated[Path, typer.Argument(help="A study directory.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    *,
    budget: Annotated[
        float | None,
        typer.Option(
            min=0, help="Percent by which a tax may have grown; fail where one surely grew by more."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two studies: which substrates and workloads became slower or faster."""
    from excise.errors import InputError
    from excise.measure import host
    from excise.measure.diff import diff
    from excise.measure.store import read_study

    a, b = read_study(before), read_study(after)
    apart = host.unlike(a.record.host, b.record.host)
    changes = diff(a, b)
    if not changes:
        raise InputError(f"{before} and {after} have no cell in common")
    if as_json:
        typer.echo(json.dumps({"unlike": apart, "changes": [_as_dict(c) for c in changes]}))
        _hold(changes, budget)
        return
    if apart:
        typer.echo(f"unlike hosts ({'; '.join(apart)}): read the ratios to bare only", err=True)
    heads = ("cell", "metric", "after/before", "relative to bare", "failed", "verdict")
    _print_table(
        heads,
        [
            (
                c.cell,
                c.metric,
                _shown(c.plain),
                _shown(c.to_bare),
                f"{c.failures[0]} > {c.failures[1]}",
                c.verdict,
            )
            for c in changes
        ],
    )
    _hold(changes, budget)


def _hold(changes: list[Change], budget: float | None) -> None:
    """Fail where a tax has surely outgrown its budget; say which could not be held to it."""
    from excise.measure.diff import TAX

    if budget is None:
        return
    taxes = [c for c in changes if c.metric == TAX]
    over = [c.cell for c in taxes if c.over(budget / 100)]
    unsure = [c.cell for c in taxes if not c.told and c.cell not in over]
    if unsure:
        typer.echo(f"too few trials to hold to a budget: {', '.join(unsure)}", err=True)
    if over:
        grown = f"the tax has grown by more than {budget:g} % with confidence"
        typer.echo(f"excise: {grown}: {', '.join(over)}", err=True)
        raise typer.Exit(1)


def _as_dict(change: Change) -> dict[str, object]:
    def bounds(ratio: Interval | None) -> list[float | None] | None:
        return None if ratio is None else [ratio.estimate, ratio.low, ratio.high]

    return {
        "cell": change.cell,
        "metric": change.metric,
        "plain": bounds(change.plain),
        "to_bare": bounds(change.to_bare),
        "failures": list(change.failures),
        "verdict": change.verdict,
    }


def _shown(ratio: Interval | None) -> str:
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.estimate:.3f}"
    return f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


@study.command("merge")
def merge_studies(
    studies: Annotated[list[Path], typer.Argument(help="Two or more study directories.")],
    *,
    out: Annotated[Path, typer.Option(help="A new directory.")],
) -> None:
    """Put several sessions of one study together; hosts must be alike."""
    from excise.measure.merge import merge
    from excise.measure.store import check_free, read_study, write_study

    check_free(out)
    merged = merge([read_study(d) for d in studies])
    write_study(out, merged.record, merged.trials)
    typer.echo(f"{out}: {len(merged.trials)} trials of {merged.record.session} sessions")


@study.command("export")
def export_study(
    directory: Annotated[Path, typer.Argument(help="A study directory.")],
    *,
    out: Annotated[Path, typer.Option(help="A new directory.")],
) -> None:
    """Write a study as Parquet: one row per trial, one row per action."""
    from excise.measure.export import export
    from excise.measure.store import read_study

    for path in export(read_study(directory), out):
        typer.echo(path)


def _print_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(r[i]) for r in (heads, *rows)) for i in range(len(heads))]
    for row in (heads, *rows):
        typer.echo("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
