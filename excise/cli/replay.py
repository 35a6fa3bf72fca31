"""`excise replay`: run a trajectory that a real agent recorded, and say how far it agrees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.measure.replay import Place, Replayed
    from excise.workloads.replay.form import Recording


def replay(
    file: Annotated[
        Path, typer.Argument(help="mini-swe-agent .traj.json, SWE-agent .traj, or replay lines.")
    ],
    *,
    substrate: Annotated[str, typer.Option(help="Where to run it, such as docker.")] = "docker",
    task: Annotated[
        str | None, typer.Option(help="Put this task's repository in the sandbox.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Use this image as it is.")] = None,
    think: Annotated[
        float, typer.Option(help="Wait for the recorded think times, times this factor.")
    ] = 0.0,
    unisolated: Annotated[
        bool, typer.Option("--unisolated", help="Allow a substrate that does not isolate.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the recording as replay lines here; run nothing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Replay a recorded trajectory and report agreement and where the time went."""
    from excise.errors import InputError
    from excise.workloads.replay import form
    from excise.workloads.replay.read import read

    if task is not None and image is not None:
        raise InputError("give --task or --image, not both: each says what is in the sandbox")
    if think < 0:
        raise InputError("--think is a factor of 0 or more")
    try:
        recording = read(file.read_bytes(), str(file))
        if save is not None:
            save.write_bytes(form.dump(recording))
            typer.echo(f"{len(recording.actions)} actions written to {save}")
            return
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    replayed = _run(recording, substrate, _place(task, image), think=think, unisolated=unisolated)
    (_print_json if as_json else _print)(recording, replayed)


def _place(task: str | None, image: str | None) -> Place:
    from excise.measure.replay import Place

    if task is None:
        return Place(image=image)
    from excise.tasks.forge import prepare
    from excise.tasks.load import task as load

    return Place(prepared=prepare(load(task)))


def _run(
    recording: Recording, named: str, place: Place, *, think: float, unisolated: bool
) -> Replayed:
    import asyncio

    from excise.measure.replay import replay as run
    from excise.substrates import registry
    from excise.substrates.base import Closes
    from excise.tasks import cache

    async def main() -> Replayed:
        name, options = registry.parse(named)
        substrate = registry.open_substrate(name, **options)
        try:
            return await run(
                substrate,
                recording,
                place,
                images=cache.root() / "images",
                think=think,
                unisolated=unisolated,
            )
        finally:
            if isinstance(substrate, Closes):
                await substrate.close()

    return asyncio.run(main())


def _print_json(recording: Recording, replayed: Replayed) -> None:
    import json
    from dataclasses import asdict

    typer.echo(json.dumps({"source": recording.source, **asdict(replayed)}))


def _print(recording: Recording, replayed: Replayed) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("#", "kind", "exit code", "similarity", "command", box=None)
    for action, agreement in zip(recording.actions, replayed.agreements, strict=True):
        code = str(agreement.rc)
        if agreement.same_rc is False:
            code += f" (was {agreement.recorded_rc})"
        alike = "-" if agreement.similarity is None else f"{agreement.similarity:.2f}"
        first_line = action.command.strip().splitlines()[0]
        table.add_row(str(action.i + 1), action.kind, code, alike, first_line[:60])
    console.print(table)
    console.print(_sentence(recording, replayed))


def _sentence(recording: Recording, replayed: Replayed) -> str:
    agreed, parts = replayed.summary, replayed.breakdown
    mean = "" if agreed.mean_similarity is None else f", mean {agreed.mean_similarity:.2f}"
    acting, total = parts.acting_ns / 1e9, parts.total_ns / 1e9
    recorded = "" if replayed.recorded_s is None else f" (recorded {replayed.recorded_s:.2f} s)"
    think = "" if replayed.think_s is None else f"; recorded think time {replayed.think_s:.1f} s"
    return (
        f"{agreed.actions} actions from {recording.source}: exit code equal in {agreed.rc_equal} of "
        f"{agreed.rc_known} known, output alike in {agreed.output_same} of {agreed.output_known} known"
        f"{mean}.\n"
        f"{total:.2f} s in all: create {parts.create_ns / 1e9:.3f}, ready {parts.ready_ns / 1e9:.3f}, "
        f"set-up {parts.set_up_ns / 1e9:.3f}, actions {acting:.3f}{recorded}, "
        f"gap {parts.gap_ns / 1e9:.3f}, cleanup {parts.cleanup_ns / 1e9:.3f}{think}."
    )
