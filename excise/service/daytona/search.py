"""Looking for text and for names below a directory: what is asked of the sandbox's own tools, and read from them. Pure."""

from __future__ import annotations

import posixpath
import re

MOST_MATCHES = 20_000

_WILD = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
_NUMBER = re.compile(rb"(\d+):")


def grep_argv(path: str, pattern: str) -> tuple[str, ...]:
    """Every line of text below `path` that holds `pattern` as it stands."""
    return ("grep", "-rnIHFZ", "-e", pattern, "--", path)


def matches(found: bytes, most: int = MOST_MATCHES) -> list[dict[str, object]]:
    """What grep told: file, zero byte, number, colon, line."""
    told: list[dict[str, object]] = []
    for line in found.split(b"\n"):
        name, zero, rest = line.partition(b"\0")
        number = _NUMBER.match(rest) if zero else None
        if number is None:
            continue
        if len(told) >= most:
            break
        told.append(
            {
                "file": name.decode("utf-8", "replace"),
                "line": int(number[1]),
                "content": rest[number.end() :].decode("utf-8", "replace"),
            }
        )
    return told


def find_argv(path: str) -> tuple[str, ...]:
    """Everything below `path` that is no directory, by its path from there."""
    return ("find", path, "-mindepth", "1", "!", "-type", "d", "-printf", r"%P\0")


def chosen(found: bytes, top: str, pattern: str, most: int = MOST_MATCHES) -> list[str]:
    """Those whose path from `top` matches a pattern with `*`, `**`, `?`, `[...]` and `{a,b}`."""
    matcher = re.compile(translated(pattern), re.DOTALL)
    names = (name.decode("utf-8", "replace") for name in found.split(b"\0") if name)
    told = sorted(posixpath.join(top, name) for name in names if matcher.fullmatch(name))
    return told[:most]


def translated(pattern: str) -> str:
    """The pattern as a regular expression. A brace or bracket that is never closed stands for itself."""
    parts: list[str] = []
    depth = at = 0
    while at < len(pattern):
        known = next(((word, to) for word, to in _WILD if pattern.startswith(word, at)), None)
        if known is not None:
            parts.append(known[1])
            at += len(known[0])
            continue
        letter, taken = pattern[at], 1
        if letter == "[" and (end := _class_end(pattern, at)) is not None:
            parts.append(_class(pattern[at + 1 : end]))
            taken = end - at + 1
        elif letter == "\\" and at + 1 < len(pattern):
            parts.append(re.escape(pattern[at + 1]))
            taken = 2
        else:
            part, change = _brace(pattern, at, depth)
            parts.append(part)
            depth += change
        at += taken
    return "".join(parts) + ")" * depth


def _brace(pattern: str, at: int, depth: int) -> tuple[str, int]:
    """What a letter stands for, and by how much the groups that are open change."""
    letter = pattern[at]
    if letter == "{" and "}" in pattern[at:]:
        return "(?:", 1
    if depth and letter in "},":
        return (")", -1) if letter == "}" else ("|", 0)
    return re.escape(letter), 0


def _class_end(pattern: str, at: int) -> int | None:
    start = at + 2 if pattern[at + 1 : at + 2] in {"!", "^"} else at + 1
    end = pattern.find("]", start + 1)
    return end if end > 0 else None


def _class(inside: str) -> str:
    negated = inside[:1] in {"!", "^"}
    letters = re.sub(r"([\\\[\]^&~|]|-(?=-))", r"\\\1", inside[1:] if negated else inside)
    try:
        re.compile(f"[{letters}]")
    except re.error:
        return re.escape(f"[{inside}]")
    return f"(?!/)[{'^' if negated else ''}{letters}]"
