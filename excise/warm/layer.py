"""A frozen interpreter as a layer: made in a jail of its environment, bound into every jail of that.

It depends on all that is below it, and on this kernel and processor too: one that was frozen elsewhere is not thawed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.agent.binary import agent_binary
from excise.errors import LayerError
from excise.layers.key import key_of
from excise.layers.runner import Command, Runner, Work
from excise.layers.store import Layer, Store
from excise.types import Deps

AUTO = "auto"
"""In `Spec.warm`: the interpreter of the last virtual environment of `Spec.deps`, else the one that PATH leads to."""

HOME = "/var/lib/excise/warm"
_MAKING = "/tmp/excise-warm"  # noqa: S108  (of a jail that is gone afterwards)
_INSIDE = Path(__file__).with_name("inside")
_PARTS = ("boot.py", "build.py", "keep.py", "probe.py", "resume.py", "watch.py")


@dataclass(frozen=True, slots=True)
class Warmth:
    """What is bound into jails, as (source, target), or why there is nothing."""

    binds: tuple[tuple[str, str], ...] = ()
    layer: Layer | None = None
    why_not: str = ""


COLD = Warmth()


def warm_layer(
    store: Store,
    interpreter: str,
    parents: Sequence[Layer],
    below: Sequence[Path],
    runner: Runner,
    also: str = "",
) -> Layer:
    """The layer, made if it is not here yet; `also` decides the result beside what is below."""
    agent = agent_binary()
    recipe = {
        "kind": "warm",
        "interpreter": interpreter,
        "made_by": _digest(agent, *(_INSIDE / part for part in _PARTS)),
        "machine": machine(),
        "also": also,
    }

    def make(tree: Path) -> None:
        runner.run(_work(interpreter, agent), below=below, tree=tree)

    return store.build(key_of(recipe, [each.id for each in parents]), recipe, make, parents)


def warmth_of(layer: Layer) -> Warmth:
    """What jails get of it: the frozen file and what else is needed, and the stand-in over the interpreter."""
    home = layer.path / HOME[1:]
    try:
        program = json.loads((home / "about.json").read_text())["program"]
    except (OSError, ValueError, KeyError) as error:
        raise LayerError(f"{layer.path} holds no interpreter: {error}") from error
    if not isinstance(program, str) or not re.fullmatch(r"(/[\w.+-]+)+", program):
        raise LayerError(f"{program!r} is no program's place")
    return Warmth(((str(home), HOME), (str(home / "shim"), program)), layer)


def interpreter_of(wanted: str, deps: Sequence[Deps]) -> str:
    """The program that `Spec.warm` means."""
    if wanted != AUTO:
        return wanted
    made = [f"{each.path}/bin/python" for each in deps if each.installer != "apt"]
    return made[-1] if made else "python3"


def machine() -> str:
    """What a frozen process cannot be moved away from."""
    system = os.uname()
    seen = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    flags = next((line for line in seen.splitlines() if line.startswith("flags")), "")
    text = f"{system.release} {system.version} {system.machine} {flags}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _work(interpreter: str, agent: Path) -> Work:
    inputs: Mapping[str, bytes] = {
        f"{_MAKING}/agent": agent.read_bytes(),
        **{f"{_MAKING}/{part}": (_INSIDE / part).read_bytes() for part in _PARTS},
    }
    commands = (
        Command(("chmod", "755", f"{_MAKING}/agent"), "placing the agent"),
        Command(("mkdir", "-p", HOME), "making room"),
        Command(
            (interpreter, f"{_MAKING}/build.py", f"{_MAKING}/agent", HOME),
            f"warming {interpreter}",
            cwd="/tmp",  # noqa: S108
        ),
    )
    return Work(commands, inputs)


def _digest(*files: Path) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]
