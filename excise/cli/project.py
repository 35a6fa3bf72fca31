"""`excise project`: what seconds per trajectory come to at training scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from excise.measure.record import TrialRecord
    from excise.tax.projection import Lengths


def project(
    study: Annotated[
        Path | None, typer.Argument(help="A study directory; or give --slow and --fast.")
    ] = None,
    *,
    slow: Annotated[
        float | None, typer.Option(help="Seconds per trajectory on the slower substrate.")
    ] = None,
    fast: Annotated[
        float | None, typer.Option(help="Seconds per trajectory on the faster substrate.")
    ] = None,
    slow_once: Annotated[
        float, typer.Option(help="Seconds of --slow that are paid once per sandbox.")
    ] = 0.0,
    fast_once: Annotated[
        float, typer.Option(help="Seconds of --fast that are paid once per sandbox.")
    ] = 0.0,
    trajectories: Annotated[float, typer.Option(help="How many, such as 1e6.")] = 1e6,
    actions: Annotated[
        int | None,
        typer.Option(help="Actions per trajectory; default: the longest measured, or 150."),
    ] = None,
    think: Annotated[float, typer.Option(help="Model seconds per action.")] = 0.0,
    failure_rate: Annotated[
        float, typer.Option(help="Share of attempts that hang until --timeout and are repeated.")
    ] = 0.0,
    timeout: Annotated[float, typer.Option(help="Seconds that a failed attempt costs.")] = 600.0,
    reuse: Annotated[int, typer.Option(help="Rollouts per sandbox.")] = 1,
    reset: Annotated[float, typer.Option(help="Seconds of one reset, where --reuse > 1.")] = 0.0,
    utilisation: Annotated[
        float, typer.Option(help="Share of the time that a slot is given to some trajectory.")
    ] = 1.0,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="In place of --actions: lognormal:MEDIAN:SIGMA[:CAP], or a file of recorded lengths."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Which workload of the study; default: the longest.")
    ] = None,
    table1: Annotated[
        bool, typer.Option("--table1", help="What small delays come to; needs no input.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Project seconds per trajectory to worker-hours, from a study or from two numbers."""
    from excise.cli import project_tables
    from excise.errors import InputError
    from excise.tax.projection import Scenario, constant, from_latency

    if table1:
        project_tables.show(project_tables.small_delays(), as_json=as_json)
        return
    if study is None and (slow is None or fast is None):
        raise InputError("give a study directory, or both --slow and --fast in seconds")
    if study is not None and (slow is not None or fast is not None):
        raise InputError("give either a study directory or --slow and --fast, not both")
    measured = None if study is None else _Source.read(study, workload)
    if lengths is not None and actions is not None:
        raise InputError("give either --actions or --lengths, not both")
    length = actions if actions is not None else (150 if measured is None else measured.longest)
    drawn = constant(length) if lengths is None else _lengths(lengths)
    scenario = Scenario(
        trajectories, drawn.mean, think, failure_rate, timeout, reuse, reset, utilisation
    )
    if measured is not None:
        report = project_tables.of_study(measured.trials, measured.workload, scenario)
        project_tables.show(report, as_json=as_json, about=drawn.text)
        return
    assert slow is not None
    assert fast is not None
    if reuse > 1 and not (slow_once and fast_once):
        raise InputError("--reuse needs to know what is paid once: --slow-once and --fast-once")
    pair = (
        from_latency("slow", slow, length, slow_once),
        from_latency("fast", fast, length, fast_once),
    )
    project_tables.show(project_tables.of_two(*pair, scenario), as_json=as_json, about=drawn.text)


def _lengths(said: str) -> Lengths:
    """`lognormal:53:0.55:250`, or a file with one number of actions per line."""
    from excise.errors import InputError
    from excise.tax.projection import empirical, lognormal

    kind, *numbers = said.split(":")
    if kind == "lognormal" and len(numbers) in (2, 3):
        try:
            median, sigma, *cap = (float(n) for n in numbers)
        except ValueError:
            raise InputError(f"--lengths {said!r}: MEDIAN, SIGMA and CAP are numbers") from None
        return lognormal(median, sigma, int(cap[0]) if cap else None)
    try:
        text = Path(said).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"--lengths {said!r} is neither lognormal:MEDIAN:SIGMA[:CAP] nor a file that can be read"
        ) from None
    words = text.split()
    if not words or not all(w.isdecimal() for w in words):
        raise InputError(f"{said} holds something else than numbers of actions, one per line")
    return empirical([int(w) for w in words])


@dataclass(frozen=True, slots=True)
class _Source:
    """The trials of a study and the workload that is projected."""

    trials: Sequence[TrialRecord]
    workload: str
    longest: int

    @classmethod
    def read(cls, directory: Path, workload: str | None) -> _Source:
        from excise.errors import InputError
        from excise.measure.rollouts import choose
        from excise.measure.store import read_study

        found = read_study(directory)
        places = {c.name: i for i, c in enumerate(found.record.cells)}
        trials = sorted(found.measured, key=lambda t: places.get(t.cell, len(places)))
        name = workload or choose(trials)
        lengths = [t.actions_planned for t in trials if t.workload == name]
        if not lengths:
            known = ", ".join(sorted({t.workload for t in trials}))
            raise InputError(f"{directory} has no trial of {name!r}; it has: {known}")
        return cls(trials, name, max(lengths))
