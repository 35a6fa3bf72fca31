"""Requirements that name exactly what is installed: one pinned package per line, hashes on all or on none."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.errors import InputError

_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,\s-]+\])?\s*===?\s*[^\s;*,<>=!~]+\s*(;.*)?")
_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"\s--hash[=\s](\S+)")


def pinned(text: str | Iterable[str]) -> tuple[str, ...]:
    """The requirements in a file's text (or in lines), sorted; InputError for what is not one exact version."""
    lines = text.splitlines() if isinstance(text, str) else list(text)
    joined = re.sub(r"\\\s*\n", " ", "\n".join(lines))
    bare = (_COMMENT.sub("", line).strip() for line in joined.splitlines())
    found = sorted({" ".join(line.split()) for line in bare if line})
    for line in found:
        if not _PINNED.fullmatch(_HASH.sub("", f" {line}").strip()):
            raise InputError(
                f"{line[:80]!r} is not one exact version: write NAME==VERSION, as `pip freeze` or "
                "`uv pip compile` does"
            )
    hashed = [line for line in found if _HASH.search(f" {line}")]
    if hashed and len(hashed) < len(found):
        bare_one = next(line for line in found if line not in hashed)
        raise InputError(f"{bare_one[:80]!r} has no --hash, but others have: give all or none")
    return tuple(found)


def are_hashed(requirements: Iterable[str]) -> bool:
    """Whether what is downloaded can be held against a hash."""
    return any(_HASH.search(f" {line}") for line in requirements)


def names_in(requirements: Iterable[str]) -> frozenset[str]:
    """The packages, named as indexes do."""
    names = (re.split(r"[\[\s=;]", line, maxsplit=1)[0] for line in requirements)
    return frozenset(re.sub(r"[-_.]+", "-", name).lower() for name in names)
