"""`excise pool`: what running pools do, and what one would do with a demand that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from excise.pools.written import Decided
    from excise.types import Spec

pool = typer.Typer(
    name="pool", help="Warm pools: what they keep, hand out and would do.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
File = Annotated[
    Path | None,
    typer.Argument(help="A demand that is written down; without it, running pools are asked."),
]


@pool.command("status")
def status(
    *,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print the numbers as Prometheus reads them.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Say what every running pool of this user has, handed out, spent and saved."""
    from excise.pools.desk import ask_all

    if metrics:
        for answer in ask_all({"ask": "metrics"}):
            typer.echo(answer.get("metrics", ""), nl=False)
        return 0
    answers = list(ask_all({"ask": "status"}))
    if as_json:
        typer.echo(json.dumps({"pools": answers}, indent=2))
        return 0
    for answer in answers:
        typer.echo(_shown(answer))
    if not answers:
        typer.echo("no pool is running: one runs as long as the program that opened it")
    return 0


@pool.command("plan")
def plan(file: File = None, *, as_json: Json = False) -> int:
    """Say which copies are worth keeping and why, and what is to be made and let go."""
    if file is None:
        return _of_running({"ask": "plan"}, as_json)
    decided = _decided(file)
    if as_json:
        typer.echo(json.dumps(_as_json(decided), indent=2))
        return 0
    for number, copy in enumerate(decided.worthy, start=1):
        typer.echo(f"{number:3}. {decided.names[copy.key]}  {copy.why}")
    for copy in decided.plan.fill:
        typer.echo(f"make {decided.names[copy.key]}")
    for leave in decided.plan.leave:
        typer.echo(f"let go of {leave.name}: {leave.why}")
    return 0


@pool.command("explain")
def explain(
    file: File = None,
    *,
    image: Annotated[str, typer.Option(help="Image that a rollout would want.")] = "host",
    repo: Annotated[str, typer.Option(help="SOURCE@COMMIT that it would want.")] = "",
    deps: Annotated[
        list[Path] | None, typer.Option(help="Requirements file that it would want; repeatable.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Say which idle sandbox a rollout would get, and what each would leave to do."""
    if file is None:
        import msgspec

        from excise.cli.environment import spec_of

        wanted: Spec = spec_of(image, repo, deps or [])
        question = {"ask": "explain", "spec": msgspec.to_builtins(wanted)}
        return _of_running(question, as_json)
    decided = _decided(file)
    if as_json:
        typer.echo(json.dumps(_as_json(decided), indent=2))
        return 0
    for match in decided.matches:
        typer.echo(str(match))
    if not decided.matches:
        typer.echo("nobody waits, or nothing idles")
    return 0


def _of_running(question: dict[str, Any], as_json: bool) -> int:
    from excise.pools.desk import ask_all

    answers = list(ask_all(question))
    if as_json:
        typer.echo(json.dumps({"pools": answers}, indent=2))
        return 0
    for answer in answers:
        typer.echo(f"{answer.get('pool', '?')} of process {answer.get('pid', '?')}")
        kept = [
            f"{one['kind']} {one['stage'][:12]}: {one['why']}" for one in answer.get("keep", ())
        ]
        for line in (*kept, *answer.get("lines", ()), *_error(answer)):
            typer.echo(f"  {line}")
    if not answers:
        typer.echo("no pool is running; name a file with a demand that is written down")
    return 0


def _decided(file: Path) -> Decided:
    from excise.errors import InputError
    from excise.pools.written import decide, parse

    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    return decide(parse(content, where=str(file)))


def _as_json(decided: Decided) -> dict[str, Any]:
    names = decided.names
    return {
        "keep": [
            {"stage": names[c.key], "worth_s": c.worth_s, "why": c.why} for c in decided.worthy
        ],
        "make": [names[c.key] for c in decided.plan.fill],
        "let_go": [{"name": gone.name, "why": gone.why} for gone in decided.plan.leave],
        "matches": [
            {
                "rollout": m.wanted.name,
                "worker": m.worker.name,
                "shared": m.shared,
                "stages": len(m.wanted.path),
                "left_s": m.left_s,
            }
            for m in decided.matches
        ],
    }


def _shown(answer: dict[str, Any]) -> str:
    if error := _error(answer):
        return error[0]
    now, got, spent = answer["now"], answer["acquired"], answer["spent"]
    handed = ", ".join(f"{count} {name}" for name, count in got.items())
    return (
        f"{answer['pool']} of process {answer['pid']}: {now['idle']:g} idle, {now['held']:g} held, "
        f"{now['making'] + now['resetting'] + now['laying']:g} under way, {now['waiting']:g} waiting, "
        f"of {now['budget']:g}\n"
        f"  handed out: {handed}; spent {spent['fill_s']:.3g} s and {spent['kept_s']:.3g} s of idling, "
        f"saved {spent['saved_s']:.3g} s; {len(answer['unfit'])} found unfit"
    )


def _error(answer: dict[str, Any]) -> list[str]:
    return [str(answer["error"])] if "error" in answer else []
