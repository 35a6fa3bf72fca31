"""Who may ask: keys as they are handed out, hashed as they are kept, and checked in constant time. Pure.

A token holds 160 random bits, so that a plain hash keeps it: there is nothing to guess. Its form is the one that
the SDKs of both compatibility doors take.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from excise.errors import InputError
from excise.service.errors import Unauthorized

PREFIX = "e2b_"
TOKEN_BYTES = 20
LONGEST_TOKEN = 200
_OWNER_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@")


class Scope(StrEnum):
    """How far a key reaches. ALL is one owner's sandboxes, WATCH is every owner's numbers and no sandbox at all.

    ANY is no key's scope: it is what an operation wants that either kind may ask for.
    """

    ALL = "all"
    WATCH = "watch"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Key:
    """One key as it is kept. `id` names it in lists; it is no secret."""

    id: str
    owner: str
    scope: Scope
    digest: bytes
    made_s: float
    expires_s: float | None = None
    revoked_s: float | None = None
    note: str = ""

    def holds(self, now_s: float) -> bool:
        """It may be used at that time of day."""
        ends = [end for end in (self.expires_s, self.revoked_s) if end is not None]
        return all(now_s < end for end in ends)


def new_key(
    owner: str,
    now_s: float,
    *,
    scope: Scope = Scope.ALL,
    expires_s: float | None = None,
    note: str = "",
) -> tuple[Key, str]:
    """A key to keep, and its token, which nobody can be told again."""
    if not 0 < len(owner) <= 100 or not set(owner) <= _OWNER_LETTERS:
        raise InputError(f"an owner is 1 to 100 letters, digits or . _ - @, not {owner!r}")
    token = PREFIX + secrets.token_hex(TOKEN_BYTES)
    key = Key(secrets.token_hex(4), owner, scope, digest(token), now_s, expires_s, note=note)
    return key, token


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


class Ring:
    """The keys of a service, by the first bytes of their digest; the rest is compared in constant time."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._by_start: dict[bytes, list[Key]] = {}
        for key in keys:
            self._by_start.setdefault(key.digest[:4], []).append(key)

    def check(self, token: str | None, now_s: float, scope: Scope = Scope.ALL) -> Key:
        """The key that token is of, or Unauthorized; what exactly is wrong with it is not told."""
        if token and len(token) <= LONGEST_TOKEN:
            given = digest(token)
            for key in self._by_start.get(given[:4], ()):
                if hmac.compare_digest(key.digest, given) and key.holds(now_s):
                    if scope not in {key.scope, Scope.ANY}:
                        raise Unauthorized(f"that key is for {key.scope}: this needs {scope}")
                    return key
        raise Unauthorized("no valid API key: make one with `excise key add OWNER`")
