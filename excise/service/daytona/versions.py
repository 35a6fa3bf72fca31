"""What an SDK says of itself, and what changed from one of its versions to another. Pure."""

from __future__ import annotations

import base64
import binascii
import re

VERSION = "X-Daytona-SDK-Version"
NEWEST = (999, 0)

MARKED_OUTPUT = (0, 170)
"""Before this version a session's output came with the marks of its streams in it, as text."""

_WRAPPED = re.compile(
    r"sh -c \"(?P<exports>(?:export [A-Za-z_][A-Za-z0-9_]*=\$\(echo '[A-Za-z0-9+/=]*' \| base64 -d\);)*) ?"
    r"echo '(?P<command>[A-Za-z0-9+/=]*)' \| base64 -d \| sh\""
)
_EXPORT = re.compile(
    r"export ([A-Za-z_][A-Za-z0-9_]*)=\$\(echo '([A-Za-z0-9+/=]*)' \| base64 -d\);"
)


def version_of(text: str | None) -> tuple[int, int]:
    """Major and minor; the newest where nothing sensible is said."""
    numbers = re.match(r"v?(\d{1,6})\.(\d{1,6})", text or "")
    return (int(numbers[1]), int(numbers[2])) if numbers else NEWEST


def unwrapped(command: str) -> tuple[str, dict[str, str]] | None:
    """The command and variables that an old SDK packed into a line for a server without a shell, if it did."""
    found = _WRAPPED.fullmatch(command)
    if found is None:
        return None
    try:
        env = {name: _text(value) for name, value in _EXPORT.findall(found["exports"])}
        return _text(found["command"]), env
    except ValueError:
        return None


def _text(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except binascii.Error as error:
        raise ValueError(str(error)) from error
