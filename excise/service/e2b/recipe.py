"""A build as the SDKs' template builder asks for it, in the service's own steps. Pure."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from excise.errors import InputError
from excise.service.e2b import asked
from excise.service.e2b.reach import PERSON
from excise.service.templates import Do, Step

HOME = f"/home/{PERSON}"
BASE = "base"
MOST_STEPS = 500
_PLACE = "/tmp/.excise-files"  # noqa: S108  # in the sandbox

_SPREAD = r"""
set -e
shopt -s dotglob globstar nullglob
whose=$1 mode=$2 to=$3 pattern=$4
cd {place}
chown -R "$whose" .
[ -z "$mode" ] || chmod -R "$mode" .
made() { [ -e "$1" ] || { made "$(dirname "$1")"; mkdir "$1"; chown "$whose" "$1"; }; }
IFS=
found=( $pattern )
if [ ${#found[@]} -eq 0 ] && [ -e "$pattern" ]; then found=( "$pattern" ); fi
if [ ${#found[@]} -eq 0 ]; then echo "nothing was uploaded for $pattern"; exit 1; fi
if [ ${#found[@]} -eq 1 ] && [ ! -d "${found[0]}" ] && [ "${to%/}" = "$to" ] && [ ! -d "$to" ]; then
  made "$(dirname "$to")"
  cp -a "${found[0]}" "$to"
else
  made "${to%/}"
  for each in "${found[@]}"; do
    if [ -d "$each" ] && [ ! -L "$each" ]; then each=$each/.; fi
    cp -a "$each" "${to%/}/"
  done
fi
cd /
rm -rf {place}
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Steps upon an image or a template. `origins` has for each step the number of the client's that it is of."""

    image: str | None
    template: str | None
    steps: tuple[Step, ...]
    origins: tuple[int, ...]
    start: str | None
    ready: str | None


def recipe_of(message: Mapping[str, Any]) -> Recipe:
    """What a client asks to have built."""
    image, template = (
        asked.maybe_text(message, "fromImage"),
        asked.maybe_text(message, "fromTemplate"),
    )
    if message.get("fromImageRegistry"):
        raise InputError("images behind a login: let the service's operator log in to the registry")
    if (image is None) == (template is None):
        raise InputError("a build begins with an image or with a template: give one of the two")
    wanted = asked.tables(message, "steps")
    if len(wanted) > MOST_STEPS:
        raise InputError(f"{len(wanted)} steps; {MOST_STEPS} is the most")
    writer = _Writer()
    if image is not None:
        writer.add(0, Step(Do.USER, (PERSON,)), Step(Do.WORKDIR, (HOME,)))
        writer.stands(PERSON, HOME)
    for number, step in enumerate(wanted, 1):
        writer.write(number, step)
    return Recipe(
        image,
        template,
        tuple(writer.steps),
        tuple(writer.origins),
        asked.maybe_text(message, "startCmd") or None,
        readiness(asked.maybe_text(message, "readyCmd")),
    )


def readiness(script: str | None) -> str | None:
    """When what was started is ready. A plain sleep is how SDKs say that they do not know: it is not slept here."""
    words = (script or "").split()
    return None if not words or words[0] == "sleep" else script


class _Writer:
    """Puts down steps, and knows who acts and where."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.origins: list[int] = []
        self._user = PERSON
        self._place = HOME

    def stands(self, user: str, place: str) -> None:
        self._user, self._place = user, place

    def add(self, origin: int, *steps: Step) -> None:
        self.steps += steps
        self.origins += [origin] * len(steps)

    def write(self, number: int, wanted: Mapping[str, Any]) -> None:
        kind, args = asked.text(wanted, "type"), asked.words(wanted, "args")
        match kind, args:
            case "RUN", [script]:
                self.add(number, Step(Do.RUN, (script,)))
            case "RUN", [script, user]:
                self._as(number, user, Step(Do.RUN, (script,)))
            case "ENV", [_, _, *_] if len(args) % 2 == 0:
                plain = not any("$" in value for value in args[1::2])
                self.add(number, Step(Do.ENV if plain else Do.EXPAND, tuple(args)))
            case "WORKDIR", [place]:
                self._place = posixpath.normpath(posixpath.join(self._place, place))
                self.add(number, Step(Do.WORKDIR, (self._place,)))
            case "USER", [user]:
                self._user = user
                self.add(number, Step(Do.USER, (user,)))
            case "COPY", [source, to, *rest]:
                self._copy(number, source, to, rest, asked.text(wanted, "filesHash"))
            case _:
                raise InputError(f"step {number}: {kind} {' '.join(args)[:100]!r} is no step")

    def _as(self, number: int, user: str, *steps: Step) -> None:
        """As somebody else, and then as before."""
        around = (Step(Do.USER, (user,)), *steps, Step(Do.USER, (self._user,)))
        self.add(number, *(around if user != self._user else steps))

    def _copy(self, number: int, source: str, to: str, rest: list[str], files: str) -> None:
        """The archive holds the files by their paths in the client's folder; where each goes is decided inside."""
        whose, mode = ([*rest, "", ""])[:2]
        place = posixpath.join(self._place, to)
        if posixpath.basename(to) in {"", "."}:
            place = posixpath.normpath(place).rstrip("/") + "/"
        words = (whose or self._user, mode, place, source.removeprefix("./") or ".")
        script = (
            f"bash -c {shlex.quote(_SPREAD.replace('{place}', _PLACE))} copy {shlex.join(words)}"
        )
        copy = Step(Do.COPY, (_PLACE, ""), files=files)
        self._as(number, "root", copy, Step(Do.RUN, (script,)))
