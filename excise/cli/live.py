"""`excise study live` and `excise top`: what a service has seen, as a study and in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Group

Url = Annotated[str | None, typer.Option(help="The service. [default: $EXCISE_URL]")]
Key = Annotated[
    str | None, typer.Option(help="A key of scope watch, or your own. [default: $EXCISE_API_KEY]")
]


def live(
    out: Annotated[Path, typer.Argument(help="Directory of the study, new or empty.")],
    state: Annotated[Path | None, typer.Option(help="The service's folder, on this host.")] = None,
    url: Url = None,
    key: Key = None,
) -> int:
    """Write the rollouts that a service has kept as a study, for `study report` and `project`."""
    from excise.service import as_study, rollout_file

    if state is not None:
        count = as_study.write(out, rollout_file.lines(state), "service")
    else:
        count = as_study.write(out, _asked(url, key, "/v1/rollouts").splitlines(), "service")
    typer.echo(f"{count} rollouts in {out}; next: excise study report {out}")
    return 0


def top(
    url: Url = None,
    key: Key = None,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between looks.")] = 2.0,
    once: Annotated[bool, typer.Option(help="Print it once and end.")] = False,
) -> int:
    """Show what a service does now: what the live page shows, in a terminal. Ctrl-C ends it."""
    import time

    from rich.console import Console
    from rich.live import Live

    console = Console()
    if once:
        console.print(_drawn(_now(url, key)))
        return 0
    with Live(_drawn(_now(url, key)), console=console, screen=True, auto_refresh=False) as shown:
        while True:
            time.sleep(every)
            shown.update(_drawn(_now(url, key)), refresh=True)


def _now(url: str | None, key: str | None) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(_asked(url, key, "/v1/live"))
    return found


def _asked(url: str | None, key: str | None, path: str) -> bytes:
    from excise.errors import Phase
    from excise.substrates.remote import connect
    from excise.substrates.remote.blocking import ask_once
    from excise.substrates.remote.requests import request

    target = connect(url, key).http.target
    return ask_once(target, request(target, "GET", path), Phase.READY, None, 60.0)


def _drawn(now: dict[str, Any]) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    states = ", ".join(f"{count} {state}" for state, count in now["states"].items()) or "none"
    draining = ", draining" if now["draining"] else ""
    head = f"{now['substrate']} ({now['isolation']}){draining}: sandboxes {states}"
    boxes = Table("sandbox", "state", "owner", "door", "template", "age", "actions", "acting")
    for box in now["sandboxes"][-20:][::-1]:
        age = f"{box['age_s']:.0f} s"
        numbers = (str(box["actions"]), str(box["acting"]))
        boxes.add_row(
            box["id"], box["state"], box["owner"], box["door"], box["template"], age, *numbers
        )
    return Group(Text(head, style="bold"), *(Text(line) for line in _lines(now)), boxes)


def _lines(now: dict[str, Any]) -> Iterator[str]:
    tax = now["tax"]
    done = (
        ", ".join(f"{count} {outcome}" for outcome, count in tax["rollouts"].items()) or "none yet"
    )
    yield f"rollouts that ended: {done}; actions: {tax['actions']}"
    yield "worker-hours: " + ", ".join(f"{part} {h:.4f}" for part, h in tax["spent_h"].items())
    yield "of them lost: " + ", ".join(f"{why} {h:.4f}" for why, h in tax["causes_h"].items())
    for name, (p50, p90, p99, count) in now.get("latency_ms", {}).items():
        yield f"{name:<9} p50 {p50:9.3f} ms  p90 {p90:9.3f} ms  p99 {p99:9.3f} ms  n {count}"
    if now.get("pool"):
        yield "pool: " + ", ".join(
            f"{name} {value:g}" for name, value in now["pool"]["status"].items()
        )
    for failure in now.get("failures", []):
        yield f"failed: {failure['kind']} {failure['phase']} {failure['count']} times"
