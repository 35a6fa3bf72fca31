"""Signed addresses of files: who has one may read or write that one file, until it expires."""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from excise.errors import InputError
from excise.service.errors import Unauthorized

_TIME = re.compile(r"-?[0-9]{1,14}")


class Deed(StrEnum):
    """What an address is for."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Signed:
    """What an address says of itself, besides its signature."""

    path: str
    deed: Deed
    user: str
    expires_s: int | None

    def by(self, token: str) -> str:
        """The signature that the holder of a sandbox's token makes."""
        words = [self.path, self.deed, self.user, token]
        if self.expires_s is not None:
            words.append(str(self.expires_s))
        digest = sha256(":".join(words).encode("utf-8", "surrogatepass")).digest()
        return "v1_" + b64encode(digest).rstrip(b"=").decode()

    def holds(self, signature: str, token: str) -> bool:
        return hmac.compare_digest(self.by(token).encode(), signature.encode("utf-8", "replace"))

    def must_live(self, now_s: float) -> None:
        """Unauthorized when its time is over."""
        if self.expires_s is not None and self.expires_s < now_s:
            raise Unauthorized("signature is already expired")


def signed(path: str, deed: Deed, user: str, expires: str | None) -> Signed:
    """What was signed, out of an address."""
    if expires is None:
        return Signed(path, deed, user, None)
    if not _TIME.fullmatch(expires):
        raise InputError("signature_expiration is no time")
    return Signed(path, deed, user, int(expires))
