"""Sandboxes that can be reached with an address alone: by a signature on a file's address, or by a port's token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from weakref import WeakValueDictionary

from excise.service.daytona.room import MOST_OPENINGS, room_of
from excise.service.sandbox import ID_LENGTH, Sandbox, State

FOREVER = 0
"""An address that says so never expires."""


class Shares:
    """Those of which a key was ever given out, for as long as they live; what tokens open is noted in their rooms."""

    def __init__(self) -> None:
        self._all: WeakValueDictionary[str, Sandbox] = WeakValueDictionary()

    def add(self, box: Sandbox) -> None:
        self._all[box.id] = box

    def find(self, id_: str) -> Sandbox | None:
        found = self._all.get(id_)
        return None if found is None or found.state is State.ENDED else found

    def open(self, box: Sandbox, port: int, until_s: float) -> str:
        """A token that opens that port; the oldest of too many opens nothing any more."""
        self.add(box)
        token, openings = box.id + secrets.token_hex(20), room_of(box).openings
        openings[token] = port, until_s
        if len(openings) > MOST_OPENINGS:
            del openings[next(iter(openings))]
        return token

    def opened(self, token: str, port: int, now_s: float) -> Sandbox | None:
        """What that token opens at that port, if it still does."""
        box = self.find(token[:ID_LENGTH])
        if box is None:
            return None
        known, until_s = room_of(box).openings.get(token, (0, 0.0))
        return box if known == port and now_s < until_s else None

    def shut(self, box: Sandbox, token: str) -> None:
        """The token opens nothing any more, if it was one of that sandbox."""
        room_of(box).openings.pop(token, None)


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
