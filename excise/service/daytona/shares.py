"""Sandboxes that can be reached with an address alone: by a signature on a file's address, or by a port's token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from excise.service.sandbox import Sandbox, State

PRUNED_AT = 1000
FOREVER = 0
"""An address that says so never expires."""


@dataclass(frozen=True, slots=True)
class Opening:
    """One port of one sandbox, until then."""

    box: Sandbox
    port: int
    until_s: float


class Shares:
    """Those of which a key was ever given out, and the ports that tokens open."""

    def __init__(self) -> None:
        self._all: dict[str, Sandbox] = {}
        self._openings: dict[str, Opening] = {}

    def add(self, box: Sandbox) -> None:
        if len(self._all) >= PRUNED_AT:
            self._all = {k: v for k, v in self._all.items() if v.state is not State.ENDED}
        self._all[box.id] = box

    def find(self, id_: str) -> Sandbox | None:
        found = self._all.get(id_)
        return None if found is None or found.state is State.ENDED else found

    def open(self, box: Sandbox, port: int, until_s: float, now_s: float) -> str:
        """A token that opens that port."""
        if len(self._openings) >= PRUNED_AT:
            self._openings = {k: v for k, v in self._openings.items() if _holds(v, now_s)}
        token = secrets.token_hex(20)
        self._openings[token] = Opening(box, port, until_s)
        return token

    def opened(self, token: str, port: int, now_s: float) -> Sandbox | None:
        """What that token opens at that port, if it still does."""
        found = self._openings.get(token)
        fits = found is not None and found.port == port and _holds(found, now_s)
        return found.box if found is not None and fits else None

    def shut(self, box: Sandbox, token: str) -> None:
        """The token opens nothing any more, if it was one of that sandbox."""
        found = self._openings.get(token)
        if found is not None and found.box is box:
            del self._openings[token]


def _holds(opening: Opening, now_s: float) -> bool:
    return opening.box.state is not State.ENDED and now_s < opening.until_s


def signature_of(key: str, method: str, path: str, expires: int) -> str:
    """What the SDK computes for the address of a file."""
    text = f"v1:files:{method}:{path}:{expires}"
    digest = hmac.new(
        key.encode(), text.encode("utf-8", "surrogateescape"), hashlib.sha256
    ).digest()
    return "v1_" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def signed(key: str, method: str, path: str, expires: str, signature: str, now_s: float) -> bool:
    """Whether that signature holds for that file now; compared in constant time."""
    if not (expires.isascii() and expires.isdigit() and len(expires) < 15):
        return False
    until = int(expires)
    wanted = signature_of(key, method, path, until)
    same = hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace"))
    return same and (until == FOREVER or now_s < until)
