"""`excise run`: one command in one fresh sandbox, and what it cost to get there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from excise.errors import SubstrateError
    from excise.substrates.base import Substrate
    from excise.tax.marks import Marks
    from excise.types import Action, Allow, Egress, Observation, Spec


def run(
    command: Annotated[list[str], typer.Argument(help="The command, after `--`.", metavar="CMD")],
    substrate: Annotated[
        str, typer.Option("--substrate", "-s", help="Name, or name:key=value,... of a substrate.")
    ] = "jail",
    image: Annotated[str, typer.Option(help="Image to run in.")] = "host",
    repo: Annotated[
        str, typer.Option(help="SOURCE@COMMIT that is in the workspace, as repo.")
    ] = "",
    deps: Annotated[
        list[Path] | None,
        typer.Option(help="Requirements file whose packages are installed; repeatable."),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", help="KEY=VALUE for the command; repeatable.")
    ] = None,
    cwd: Annotated[str | None, typer.Option(help="Directory, counted from the workspace.")] = None,
    stdin: Annotated[
        Path | None, typer.Option(help="File the command reads; - is our own input.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until it is killed.")] = None,
    egress: Annotated[bool, typer.Option(help="Let it reach the network.")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Let it reach this host:port, and no other; repeatable."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print observation and breakdown instead of the output.")
    ] = False,
) -> int:
    """Run one command in a fresh sandbox and end with its exit code.

    If the substrate itself fails, the exit code is 1, and with --json the outcome is substrate_error.
    """
    import asyncio
    from dataclasses import replace

    from excise.cli.environment import spec_of
    from excise.errors import ExciseError, SubstrateError, SubstrateUnavailable
    from excise.substrates import registry
    from excise.types import Action

    name, options = registry.parse(substrate)
    spec = replace(spec_of(image, repo, deps or []), egress=_egress(egress, allow or []))
    action = Action(tuple(command), cwd, _environment(env or []), _input(stdin), timeout_s=timeout)
    opened = registry.open_substrate(name, **options)
    try:
        observation, marks = asyncio.run(_once(opened, spec, action))
    except SubstrateError as error:
        if as_json:
            _print_json({"outcome": "substrate_error", "error": _error(error)})
            return 1
        if isinstance(error, SubstrateUnavailable):
            usable = asyncio.run(registry.availability(name, **options))
            raise ExciseError(f"{substrate} cannot be used here: {usable}") from error
        raise
    if as_json:
        _print_json(_result(opened, observation, marks))
    else:
        _print(observation, timeout)
    return observation.exit_code


async def _once(substrate: Substrate, spec: Spec, action: Action) -> tuple[Observation, Marks]:
    from excise.session import Session
    from excise.substrates.base import Closes

    try:
        async with Session(substrate, spec) as session:
            observation = await session.act(action)
        return observation, session.marks
    finally:
        if isinstance(substrate, Closes):
            await substrate.close()


def _egress(full: bool, targets: list[str]) -> Egress | Allow:
    from excise.errors import InputError
    from excise.types import Allow, Egress

    if full and targets:
        raise InputError("--egress lets it reach everything, --allow a list: give one of the two")
    if targets:
        return Allow(tuple(targets))
    return Egress.FULL if full else Egress.NONE


def _environment(pairs: list[str]) -> dict[str, str]:
    from excise.errors import InputError

    env = dict(pair.partition("=")[::2] for pair in pairs)
    if "" in env or any("=" not in pair for pair in pairs):
        raise InputError(f"--env takes KEY=VALUE, not {' '.join(pairs)!r}")
    return env


def _input(path: Path | None) -> bytes:
    import sys

    from excise.errors import InputError

    if path is None:
        return b""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"--stdin cannot be read: {error}") from error


def _print(observation: Observation, timeout_s: float | None) -> None:
    import sys

    sys.stdout.buffer.write(observation.stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(observation.stderr)
    sys.stderr.flush()
    if observation.timed_out:
        typer.echo(f"excise: killed after {timeout_s:g} s", err=True)


def _result(substrate: Substrate, observation: Observation, marks: Marks) -> dict[str, Any]:
    from dataclasses import asdict

    from excise.tax.breakdown import break_down

    parts = break_down(marks)
    seen = asdict(observation) | {
        "stdout": observation.stdout.decode("utf-8", "replace"),
        "stderr": observation.stderr.decode("utf-8", "replace"),
    }
    return {
        "outcome": "ok",
        "substrate": substrate.name,
        "isolation": substrate.isolation.name.lower(),
        "observation": seen,
        "breakdown": asdict(parts) | {"tti_ns": parts.tti_ns, "episode_ns": parts.episode_ns},
    }


def _error(error: SubstrateError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "phase": str(error.phase),
        "message": error.message,
        "retryable": error.retryable,
    }


def _print_json(value: dict[str, Any]) -> None:
    import json

    typer.echo(json.dumps(value, indent=2))
