"""A Dockerfile in the words of templates: an image, and steps upon it. What needs Docker itself is refused by name. Pure.

Taken: FROM, RUN (also as a list or a here-document), ENV, ARG, WORKDIR, USER, ENTRYPOINT and CMD. LABEL, EXPOSE,
MAINTAINER, STOPSIGNAL, HEALTHCHECK and VOLUME change nothing that a sandbox has, and are passed over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from excise.errors import InputError
from excise.service.errors import Unsupported
from excise.service.templates import Do, Step

LONGEST = 256 * 1024
MOST_LINES = 5000

_PASSED_OVER = frozenset({"LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK", "VOLUME"})
_SHELLS = frozenset({'["/bin/bash","-c"]', '["/bin/sh","-c"]'})
_DIRECTIVE = re.compile(r"#\s*(syntax|escape|check)\s*=", re.IGNORECASE)
_HERE = re.compile(r"<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(
    r"\$(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:[-+])(?P<word>[^}]*))?\})"
)
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S+))?\s+")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its continuation lines joined; `body` is its here-document, if it has one."""

    word: str
    rest: str
    line: int
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a Dockerfile comes to. `start` is the script that its entry point is."""

    image: str
    steps: tuple[Step, ...] = ()
    start: str | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """Variables as far as the reader has come: arguments hold for the build, the environment for ever."""

    args: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """A variable hides an argument of its name."""
        return self.env.get(name, self.args.get(name, ""))


def plan_of(text: str) -> Plan:
    """The plan, or InputError (Unsupported where Docker would be needed) that names the line."""
    if len(text) > LONGEST:
        raise InputError(f"a Dockerfile of {len(text)} characters; {LONGEST} is the most")
    reader = _Reader()
    for instruction in instructions(text):
        try:
            reader.take(instruction)
        except InputError as error:
            told = f"Dockerfile line {instruction.line}: {error}"
            raise type(error)(told) from error
    return reader.plan()


def instructions(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile, comments left out."""
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        raise InputError(f"a Dockerfile of more than {MOST_LINES} lines")
    found, at = [], 0
    while at < len(lines):
        parts: list[str] = []
        first = at
        while at < len(lines):
            line = lines[at]
            at += 1
            if line.lstrip().startswith("#") or (parts and not line.strip()):
                if _DIRECTIVE.match(line.strip()) and "escape" in line.lower() and "`" in line:
                    raise Unsupported(f"Dockerfile line {at}: another escape character than \\")
                if not parts:
                    break
                continue
            bare = line.rstrip()
            parts.append(bare[:-1] if bare.endswith("\\") else line)
            if not bare.endswith("\\"):
                break
        joined = "".join(parts).strip()
        if not joined:
            continue
        word, _, rest = joined.partition(" ")
        body, at = _here(rest, lines, at, first + 1)
        found.append(Instruction(word.upper(), rest.strip(), first + 1, body))
    return found


def _here(rest: str, lines: list[str], at: int, line: int) -> tuple[str | None, int]:
    opened = _HERE.search(rest)
    if opened is None:
        return None, at
    body: list[str] = []
    for number in range(at, len(lines)):
        text = lines[number].lstrip("\t") if opened[1] else lines[number]
        if text == opened[3]:
            return "\n".join(body) + "\n", number + 1
        body.append(text)
    raise InputError(f"Dockerfile line {line}: the here-document never ends with {opened[3]}")


class _Reader:
    def __init__(self) -> None:
        self._image: str | None = None
        self._known = _Known()
        self._steps: list[Step] = []
        self._entry: list[str] = []
        self._command: list[str] = []
        self._readers: dict[str, Callable[[str], None]] = {
            "FROM": self._from,
            "ENV": self._env,
            "ARG": self._arg,
            "WORKDIR": lambda rest: self._step(Do.WORKDIR, self._one(rest)),
            "USER": lambda rest: self._step(Do.USER, self._one(rest)),
        }

    def plan(self) -> Plan:
        if self._image is None:
            raise InputError("the Dockerfile has no FROM")
        words = [*self._entry, *self._command]
        return Plan(self._image, tuple(self._steps), shlex.join(words) if words else None)

    def take(self, instruction: Instruction) -> None:
        word, rest = instruction.word, instruction.rest
        if word in _PASSED_OVER:
            return
        if self._image is None and word not in {"FROM", "ARG"}:
            raise InputError(f"{word} before FROM")
        if word == "RUN":
            self._run(rest, instruction.body)
        elif word in {"ENTRYPOINT", "CMD"}:
            self._starts(word, _command(rest))
        elif (reads := self._readers.get(word)) is not None:
            reads(rest)
        elif word in {"COPY", "ADD"}:
            raise Unsupported(
                f"{word} needs the files of a build context, which this service takes in no"
                " other way than into the sandbox: upload them after it is created"
            )
        elif word != "SHELL" or rest.replace(" ", "") not in _SHELLS:
            raise Unsupported(f"{word} needs Docker to build")

    def _starts(self, word: str, words: list[str]) -> None:
        """A new entry point lets go of the command before it."""
        if word == "ENTRYPOINT":
            self._entry, self._command = words, []
        else:
            self._command = words

    def _from(self, rest: str) -> None:
        if self._image is not None:
            raise Unsupported("a build in several stages needs Docker")
        flags, rest = _flags(rest)
        words = split(rest, self._known.value)
        named = len(words) == 3 and words[1].upper() == "AS"
        if set(flags) - {"platform"} or not (len(words) == 1 or named):
            raise InputError("FROM takes one image")
        if words[0].lower() == "scratch":
            raise Unsupported("FROM scratch: a sandbox needs a system to run in")
        self._image = words[0]
        self._known = replace(self._known, env={})

    def _run(self, rest: str, body: str | None) -> None:
        flags, rest = _flags(rest)
        for name, value in flags.items():
            if name == "mount" and "type=cache" in (value or ""):
                continue
            raise Unsupported(f"RUN --{name} needs Docker")
        if body is not None:
            script = body if _HERE.fullmatch(rest) else f"{rest}\n{body}{_ends(rest)}\n"
        else:
            words = _list(rest)
            script = rest if words is None else shlex.join(words)
        if not script.strip():
            raise InputError("RUN without a command")
        given = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in self._visible().items())
        self._step(Do.RUN, given + script)

    def _visible(self) -> dict[str, str]:
        """Arguments that no variable hides."""
        return {k: v for k, v in self._known.args.items() if k not in self._known.env}

    def _env(self, rest: str) -> None:
        """`A=1 B="two words"`, or the old `A value to the end of the line`."""
        name, space, value = rest.partition(" ")
        if space and "=" not in name:
            pairs = [(name, " ".join(split(value, self._known.value)))]
        else:
            parted = [word.partition("=") for word in split(rest, self._known.value)]
            if not parted or any(not equals for _, equals, _ in parted):
                raise InputError("ENV takes NAME=value")
            pairs = [(key, text) for key, _, text in parted]
        for key, text in pairs:
            if not key or "\0" in key + text:
                raise InputError(f"{key[:80]!r} is no name of a variable")
        self._known = replace(self._known, env=self._known.env | dict(pairs))
        self._step(Do.ENV, *(word for pair in pairs for word in pair))

    def _arg(self, rest: str) -> None:
        for word in split(rest, self._known.value):
            name, given, value = word.partition("=")
            if not _NAME.fullmatch(name):
                raise InputError(f"ARG {name[:80]!r} is no name")
            kept = value if given else self._known.args.get(name, "")
            self._known = replace(self._known, args=self._known.args | {name: kept})

    def _one(self, rest: str) -> str:
        words = split(rest, self._known.value)
        if len(words) != 1:
            raise InputError(f"one word is wanted, not {rest[:80]!r}")
        return words[0]

    def _step(self, do: Do, *words: str) -> None:
        self._steps.append(Step(do, words))


def _ends(rest: str) -> str:
    opened = _HERE.search(rest)
    assert opened is not None
    return opened[3]


def _flags(rest: str) -> tuple[dict[str, str | None], str]:
    flags: dict[str, str | None] = {}
    while (found := _FLAG.match(rest)) is not None:
        flags[found[1]] = found[2]
        rest = rest[found.end() :]
    return flags, rest


def _list(rest: str) -> list[str] | None:
    """The words of the form `["a", "b"]`."""
    if not rest.startswith("["):
        return None
    try:
        return msgspec.json.decode(rest.encode("utf-8", "replace"), type=list[str])
    except (msgspec.MsgspecError, RecursionError):
        return None


def _command(rest: str) -> list[str]:
    words = _list(rest)
    return ["/bin/sh", "-c", rest] if words is None else words


def split(text: str, value: Callable[[str], str]) -> list[str]:
    """Words as Docker reads them: single quotes keep all as it is, variables are put in elsewhere."""
    words: list[str] = []
    word: list[str] | None = None
    quote, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter.isspace() and not quote:
            if word is not None:
                words.append("".join(word))
                word = None
            at += 1
            continue
        word = [] if word is None else word
        if letter == quote or (letter in "'\"" and not quote):
            quote = "" if quote else letter
        elif letter == "\\" and quote != "'" and at + 1 < len(text):
            at += 1
            kept = not quote or text[at] in '"\\$'
            word.append(text[at] if kept else "\\" + text[at])
        elif letter == "$" and quote != "'" and (found := _VARIABLE.match(text, at)):
            word.append(_put_in(found, value))
            at = found.end() - 1
        else:
            word.append(letter)
        at += 1
    if quote:
        raise InputError(f"quotes that never end: {text[:80]!r}")
    return words if word is None else [*words, "".join(word)]


def _put_in(found: re.Match[str], value: Callable[[str], str]) -> str:
    held = value(found["plain"] or found["braced"])
    if found["how"] == ":-":
        return held or found["word"]
    if found["how"] == ":+":
        return found["word"] if held else ""
    return held
