"""A substrate that is served elsewhere: `excise serve` on this machine or another, spoken to over HTTP.

Covered: every ability that the served substrate has, through one kept connection per action under way. Requests
that are safe to repeat are repeated when a connection breaks, and no others. Sandboxes are leased: what a killed
client leaves behind is reaped by the service.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from excise.errors import InputError
from excise.substrates.base import Availability

if TYPE_CHECKING:
    from excise.substrates.remote.substrate import Remote

URL_VARIABLE = "EXCISE_URL"
KEY_VARIABLE = "EXCISE_API_KEY"
DEFAULT_URL = "http://127.0.0.1:7070"
LOOPBACK = "loopback"


def connect(url: str | None = None, key: str | None = None, **options: str) -> Remote:
    """The service at `url`; without arguments, the one that EXCISE_URL and EXCISE_API_KEY name."""
    from excise.substrates.remote.substrate import Remote

    return Remote.of(*_where(url, key), **options)


def open_substrate(
    *, url: str | None = None, key: str | None = None, on: str | None = None, **options: str
) -> Remote:
    """`service`, or `service:url=http://host:7070,key=...`; options: `template`, `ca`, `lease_s`.

    `service:on=loopback`: it is on this machine, and can be stocked for a study.
    """
    if on is None:
        return connect(url, key, **options)
    from excise.substrates.remote.here import Here

    where, key = _where(url, key)
    if on != LOOPBACK or not is_loopback(where):
        raise InputError(
            f"service:on={on}: on=loopback, and only for a service at a loopback address, not at {where}"
        )
    return Here.of(where, key, **options)


def is_loopback(url: str) -> bool:
    """Whether that address never leaves this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _where(url: str | None, key: str | None) -> tuple[str, str]:
    url = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    key = key or os.environ.get(KEY_VARIABLE)
    if not key:
        raise InputError(f"the service at {url} wants a key: give one, or set {KEY_VARIABLE}")
    return url, key


async def availability(
    *, url: str | None = None, key: str | None = None, on: str | None = None, **options: str
) -> Availability:
    """Whether a service answers there and takes the key."""
    from excise.errors import ExciseError

    try:
        remote = open_substrate(url=url, key=key, on=on, **options)
    except InputError as error:
        return Availability(False, str(error), "excise serve")
    try:
        facts = await remote.describe()
    except ExciseError as error:
        return Availability(False, str(error), "excise serve")
    finally:
        await remote.close()
    return Availability(True, f"{facts['served']} at {facts['url']}")
