"""What the SDK offers and the service refuses, each time with the reason."""

from __future__ import annotations

import contextlib
import json

import daytona
from calling import Absent, Called, exercise, named


@exercise("absent")
async def has_no_volumes(client: Called, box: Called) -> None:
    for name, args in (("list", ()), ("get", ("v",)), ("create", ("v",)), ("delete", (_Named(),))):
        await _no(client.volume, name, *args)


@exercise("absent")
async def has_no_secrets(client: Called, box: Called) -> None:
    made = getattr(daytona, "CreateSecretParams", _Named)
    changed = getattr(daytona, "UpdateSecretParams", _Named)
    for name, args in (
        ("list", ()),
        ("get", ("s",)),
        ("create", (made(name="S", value="v"),)),
        ("update", ("s", changed(value="w"))),
        ("delete", ("s",)),
    ):
        await _no(client.secret, name, *args)
    await _no(box, "update_secrets", {"A": "b"})


@exercise("absent")
async def fills_its_pools_itself(client: Called, box: Called) -> None:
    for name, args in (
        ("list", ()),
        ("create", ("s", 1)),
        ("update", ("p", 1)),
        ("delete", ("p",)),
    ):
        await _no(client.warm_pool, name, *args)


@exercise("absent")
async def has_no_language_servers(client: Called, box: Called) -> None:
    server = await box.create_lsp_server("python", "/work")
    position = daytona.LspCompletionPosition(line=0, character=0)
    for name, args in (
        ("start", ()),
        ("stop", ()),
        ("did_open", ("/work/a.py",)),
        ("did_close", ("/work/a.py",)),
        ("document_symbols", ("/work/a.py",)),
        ("sandbox_symbols", ("q",)),
        ("completions", ("/work/a.py", position)),
    ):
        await _no(server, name, *args)


@exercise("absent")
async def has_no_display(client: Called, box: Called) -> None:
    for name, args in (
        ("start", ()),
        ("stop", ()),
        ("get_status", ()),
        ("get_process_status", ("p",)),
        ("restart_process", ("p",)),
        ("get_process_logs", ("p",)),
        ("get_process_errors", ("p",)),
    ):
        await _no(box.computer_use, name, *args)


@exercise("absent")
async def has_no_ssh_and_keeps_its_size(client: Called, box: Called) -> None:
    await _no(box, "create_ssh_access")
    await _no(box, "revoke_ssh_access", "t")
    await _no(box, "validate_ssh_access", "t")
    await _no(box, "resize", daytona.Resources(cpu=1))


@exercise("absent")
async def keeps_no_history_of_its_use(client: Called, box: Called) -> None:
    await _no(box, "get_metrics")
    await _no(box, "get_metrics_latest")


@exercise("absent")
async def mends_nothing_that_is_whole(client: Called, box: Called) -> None:
    with contextlib.suppress(daytona.DaytonaError):
        await box.recover()
        raise AssertionError("nothing was said")
    box.notes.refused["Sandbox.recover"] = (
        "a sandbox here is never in an error state: it works or has ended"
    )


class _Named:
    """Something with an id."""

    id = "v"

    def __init__(self, **words: object) -> None:
        self.__dict__.update(words)


async def _no(service: Called, name: str, *args: object) -> None:
    """Refused with the reason in the SDK's own terms."""
    method = getattr(service, name)
    try:
        await method(*args)
    except daytona.DaytonaError as error:
        why = str(error).rpartition(": ")[2] if ": " in str(error) else str(error)
    except Absent:
        raise
    except Exception as error:
        body = getattr(error, "body", None)
        if body is None:
            raise
        why = json.loads(body)["message"]
    else:
        raise AssertionError(f"{name} was not refused")
    service.notes.refused[f"{named(service.inner)}.{name}"] = why
