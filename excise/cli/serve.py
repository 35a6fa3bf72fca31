"""`excise serve`: sandboxes over HTTP, from one process, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import ssl

    from excise.service.daemon import Plan
    from excise.service.doors import Desk
    from excise.service.policy import Policy
    from excise.substrates.base import Substrate

DEFAULT_PORT = 7070


def serve(
    substrate: Annotated[
        str, typer.Option("--substrate", "-s", help="What to serve: NAME or NAME:key=value,...")
    ] = "jail",
    pool: Annotated[
        bool, typer.Option(help="Keep sandboxes ready before they are asked for.")
    ] = True,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any.")] = DEFAULT_PORT,
    state: Annotated[Path | None, typer.Option(help="Folder of keys and state.")] = None,
    sandboxes: Annotated[int, typer.Option(help="The most there may be at once.")] = 1000,
    per_owner: Annotated[int | None, typer.Option(help="The most one owner may have.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests a second of each owner.")] = None,
    egress: Annotated[bool, typer.Option(help="Let callers give sandboxes a network.")] = False,
    only_templates: Annotated[
        bool, typer.Option(help="Take no images by name, but templates only.")
    ] = False,
    templates: Annotated[
        Path | None, typer.Option(help="TOML file of templates for everybody.")
    ] = None,
    repository: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER that callers may have; repeatable.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Serve TLS for this domain and all names below it.")
    ] = None,
    tls: Annotated[
        bool, typer.Option(help="Serve TLS, signed by an authority of our own.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option(help="Serve TLS with this certificate.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's private key.")] = None,
    tax: Annotated[bool, typer.Option(help="Keep every rollout's tax.")] = True,
    drain: Annotated[
        float, typer.Option(help="Seconds that sandboxes may live on after SIGTERM.")
    ] = 30.0,
    log: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> int:
    """Serve sandboxes until SIGTERM. Prints what to export for each SDK."""
    import asyncio
    import logging

    from excise.errors import InputError
    from excise.service import daemon
    from excise.service import log as logs
    from excise.service.policy import Policy
    from excise.service.repositories import repositories_of
    from excise.service.serve import Address
    from excise.service.template_file import templates_of
    from excise.service.tracing import tracing
    from excise.types import Egress

    if log.upper() not in logging.getLevelNamesMapping():
        raise InputError(f"--log is debug, info, warning or error, not {log!r}")
    folder = (state or daemon.state_folder()).absolute()
    policy = Policy(
        sandboxes=sandboxes,
        sandboxes_per_owner=per_owner,
        requests_per_s=rate,
        egress=Egress.FULL if egress else Egress.NONE,
        any_image=not only_templates,
        repositories=repositories_of(repository or []),
    )
    context, authority = _tls(folder, domain, certificate, key, ours=tls)
    plan = daemon.Plan(
        folder,
        Address(host, port),
        policy,
        templates_of(templates) if templates else (),
        context,
        domain,
        tax=tax,
        drain_s=drain,
    )
    opened = _opened(substrate, policy, pool=pool)
    handler = logs.begin(log)
    tokens = _first_keys(folder)
    try:
        with tracing():
            asyncio.run(daemon.run(opened, plan, lambda desk: _say(desk, plan, tokens, authority)))
    finally:
        logs.LOGGER.removeHandler(handler)
    return 0


def _opened(name: str, policy: Policy, *, pool: bool) -> Substrate:
    from excise.pools.rules import Rules
    from excise.pools.size import Budget
    from excise.pools.through import pooled
    from excise.substrates import registry

    base, options = registry.parse(name)
    opened = registry.open_substrate(base, **options)
    if not pool or base.endswith("+pool"):
        return opened
    return pooled(opened, Rules(budget=Budget(sandboxes=policy.sandboxes or 1000)))


def _tls(
    folder: Path, domain: str | None, certificate: Path | None, key: Path | None, *, ours: bool
) -> tuple[ssl.SSLContext | None, Path | None]:
    from excise.errors import InputError

    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key belong together: give both")
    if certificate is None and domain is None and not ours:
        return None, None
    from excise.service import tls

    if certificate is not None and key is not None:
        return tls.given(certificate, key), None
    return tls.generated(folder / "tls", tls.below(domain) if domain else ())


def _first_keys(folder: Path) -> tuple[str, str] | None:
    """Keys, where there are none yet: one to use it, and one for the page, which reaches no sandbox."""
    import time

    from excise.service.keys import Scope, new_key
    from excise.service.state import key_file

    now_s = time.time()
    with key_file(folder) as keys:
        if any(key.holds(now_s) for key in keys.all()):
            return None
        mine, token = new_key("me", now_s, note="made when the service first started")
        page, watching = new_key("me", now_s, scope=Scope.WATCH, note="for the page")
        keys.add(mine)
        keys.add(page)
    return token, watching


def _say(desk: Desk, plan: Plan, tokens: tuple[str, str] | None, authority: Path | None) -> None:
    import sys

    from excise.service.told import exports

    shown = plan.domain if plan.domain is None or ":" in plan.domain else None
    domain = shown or (f"{plan.domain}:{desk.url.rpartition(':')[2]}" if plan.domain else None)
    ca = None if authority is None else str(authority)
    typer.echo(f"# serving {desk.cloud.substrate.name} at {desk.url}")
    token = None if tokens is None else tokens[0]
    if tokens is None:
        typer.echo("# keys: excise key list; another: excise key add OWNER")
        typer.echo(f"# the page: {desk.url}/ with a key of `excise key add OWNER --scope watch`")
    else:
        typer.echo(f"# the page: {desk.url}/#key={tokens[1]}")
    for line in exports(desk.url, token, domain=domain, ca=ca):
        typer.echo(line)
    typer.echo("# ready; SIGTERM or Ctrl-C drains it, a second one ends it")
    sys.stdout.flush()
