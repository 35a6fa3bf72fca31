"""HTTP/1.1 requests as bytes, and where they go. Pure; nothing that a caller gives can add a header or a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlencode, urlsplit

from excise.errors import InputError
from excise.substrates.remote.wire import API_KEY

_CONTROL = frozenset(map(chr, [*range(32), 127]))


@dataclass(frozen=True, slots=True)
class Target:
    """One service: where it listens, and what every request to it says."""

    host: str
    port: int
    secure: bool
    prefix: str
    always: bytes

    @classmethod
    def of(cls, url: str, key: str) -> Self:
        """From `http://host:port` or `https://host`, and a key."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1:
            raise InputError(f"{url!r} is no address of a service: give http://HOST:PORT")
        if parts.username or parts.query or parts.fragment:
            raise InputError(f"{url!r}: an address is scheme, host, port and path only")
        secure = parts.scheme == "https"
        plain = field(key, "the key")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        shown = host if port is None else f"{host}:{port}"
        always = f"Host: {field(shown, 'the host')}\r\n{API_KEY}: {plain}\r\n".encode("latin-1")
        return cls(
            parts.hostname,
            port or (443 if secure else 80),
            secure,
            quote(parts.path.rstrip("/")),
            always,
        )

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}:{self.port}{self.prefix}"


def request(
    target: Target,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = "application/json",
) -> bytes:
    """One whole request. `path` is quoted already."""
    lines = [f"{method} {target.prefix}{path} HTTP/1.1\r\n"]
    for name, value in (headers or {}).items():
        lines.append(f"{name}: {field(value, name)}\r\n")
    if body is not None:
        lines.append(f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n")
    elif method not in {"GET", "HEAD"}:
        lines.append("Content-Length: 0\r\n")
    return "".join(lines).encode("latin-1") + target.always + b"\r\n" + (body or b"")


def query(path: str, /, **values: str | float | None) -> str:
    """The path with those values that are not None behind it."""
    given = {name: str(value) for name, value in values.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def part(text: str) -> str:
    """One part of a path: quoted so that it stays one."""
    return quote(text, safe="")


def field(value: str, what: str) -> str:
    """A header's value, or an InputError where it would be more than that."""
    if not value or not value.isascii() or _CONTROL & set(value) or value != value.strip():
        raise InputError(
            f"{what} cannot be sent: it is empty, or has characters a header cannot hold"
        )
    return value
