"""Substrates through the tools that people reach them by: what the layer in between costs.

`docker@sdk`, `docker@mini-swe-agent`, `docker@swe-rex`, `bwrap@mini-swe-agent`, `local@swe-rex`: the tool makes its own sandbox
and runs every action in it, by its own classes and in its own interpreter; the limits are the substrate's. It is there to be
measured and not to be built on: what a tool cannot do, such as standard input, another user, streams
that are told apart, or killing what a command has left, cannot be done through it either.

Not here: Harbor. Its docker provider needs Python 3.12 and the compose plug-in, which Debian 12 has neither of.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from excise.errors import InputError
from excise.substrates.adapters.child import PYTHON
from excise.substrates.base import Availability

if TYPE_CHECKING:
    from excise.substrates.base import Substrate

IMPORTS = {"sdk": "docker", "swe-rex": "swerex", "mini-swe-agent": "minisweagent"}
PACKAGES = {"sdk": "docker", "swe-rex": "swe-rex", "mini-swe-agent": "mini-swe-agent"}


def open_substrate(**options: str) -> Substrate:
    """`on=`, `tool=`: which; `python=`: the interpreter that has the tool. Others are the substrate's below."""
    below, tool, python, rest = _chosen(options)
    if below == "docker":
        from excise.substrates.adapters.container import AdaptedContainer
        from excise.substrates.container.config import Options

        return AdaptedContainer(Options.of({**rest, "engine": "docker"}), tool, python)
    from excise.substrates.adapters.directories import AdaptedDirectories

    if rest:
        raise InputError(f"{below}@{tool} has no option {', '.join(sorted(rest))}; it has: python")
    return AdaptedDirectories(below, tool, python)


async def availability(**options: str) -> Availability:
    """Whether the substrate below works, and the tool can be imported where it is said to be."""
    below, tool, python, rest = _chosen(options)
    from excise.substrates import registry

    under = await registry.availability(below, **rest)
    if not under.usable:
        return under
    found = await asyncio.create_subprocess_exec(
        python, "-c", f"import {IMPORTS[tool]}",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    if await found.wait() != 0:
        remedy = f"pip install {PACKAGES[tool]}, and name its interpreter: export {PYTHON}=/path/to/python"
        return Availability(False, f"{python} has no {IMPORTS[tool]}", remedy)
    return Availability(True, f"{under.reason}, through {tool}")


def _chosen(options: dict[str, str]) -> tuple[str, str, str, dict[str, str]]:
    rest = dict(options)
    below, tool = rest.pop("on"), rest.pop("tool")
    python = rest.pop("python", None) or os.environ.get(PYTHON) or sys.executable
    return below, tool, python, rest
