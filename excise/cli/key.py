"""`excise key`: who may use a service. Changes count for a running one within a second."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

key = typer.Typer(
    name="key", help="Make, list, rotate and revoke a service's API keys.", no_args_is_help=True
)

State = Annotated[Path | None, typer.Option(help="The service's folder of keys and state.")]
Note = Annotated[str, typer.Option(help="What it is for.")]
Days = Annotated[float | None, typer.Option(help="It holds for so many days.")]
DAY_S = 86_400.0


@key.command()
def add(
    owner: Annotated[str, typer.Argument(help="Whose sandboxes it reaches.")],
    scope: Annotated[
        str, typer.Option(help="all, or watch: everybody's numbers, no sandbox.")
    ] = "all",
    days: Days = None,
    note: Note = "",
    state: State = None,
) -> None:
    """Make one, and print its token, which is not kept and cannot be told again."""
    import time

    from excise.errors import InputError
    from excise.service.keys import Scope, new_key
    from excise.service.state import key_file

    if scope not in {Scope.ALL, Scope.WATCH}:
        raise InputError(f"--scope is all or watch, not {scope!r}")
    now_s = time.time()
    ends_s = None if days is None else now_s + days * DAY_S
    made, token = new_key(owner, now_s, scope=Scope(scope), expires_s=ends_s, note=note)
    with key_file(_folder(state)) as keys:
        keys.add(made)
    typer.echo(token)


@key.command("list")
def list_(
    state: State = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show all there are. Tokens are not kept, only their hashes."""
    import json
    import time

    from excise.service.state import key_file
    from excise.service.told import table

    with key_file(_folder(state)) as keys:
        found = keys.all()
    now_s = time.time()
    rows = [
        {
            "id": each.id,
            "owner": each.owner,
            "scope": each.scope.value,
            "made": _date(each.made_s),
            "until": _date(min(filter(None, (each.expires_s, each.revoked_s)), default=None)),
            "holds": each.holds(now_s),
            "note": each.note,
        }
        for each in found
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    heads = ("id", "owner", "scope", "made", "until", "holds", "note")
    body = [
        tuple("no" if row[h] is False else "yes" if row[h] is True else str(row[h]) for h in heads)
        for row in rows
    ]
    for line in table([heads, *body]):
        typer.echo(line)


@key.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As `excise key list` shows it.")],
    state: State = None,
) -> None:
    """End one at once."""
    import time

    from excise.service.state import key_file

    with key_file(_folder(state)) as keys:
        keys.end(id_, time.time())
    typer.echo(f"key {id_} is revoked")


@key.command()
def rotate(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As `excise key list` shows it.")],
    overlap: Annotated[float, typer.Option(help="Seconds that the old one still holds.")] = 3600.0,
    state: State = None,
) -> None:
    """Make another for the same owner, print its token, and let the old one end after the overlap."""
    import time

    from excise.service.keys import new_key
    from excise.service.state import key_file

    now_s = time.time()
    with key_file(_folder(state)) as keys:
        old = keys.find(id_)
        made, token = new_key(old.owner, now_s, scope=old.scope, note=old.note)
        keys.add(made)
        keys.end(id_, now_s + overlap)
    typer.echo(token)


def _folder(state: Path | None) -> Path:
    from excise.service.daemon import state_folder

    return state or state_folder()


def _date(at_s: float | None) -> str:
    import datetime as dt

    return (
        "" if at_s is None else dt.datetime.fromtimestamp(at_s, dt.UTC).strftime("%Y-%m-%d %H:%M")
    )
