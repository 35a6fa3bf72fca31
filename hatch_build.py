"""Builds the native program into the wheel: one static binary per machine, for any Python and any C library."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BINARY = "excise/agent/excise-agent"
# A static program needs no C library, so both names of "Linux" that installers know are true.
TAG = "py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"


class NativeProgram(BuildHookInterface):  # type: ignore[type-arg,misc]
    """Runs `native/build` for wheels, the editable ones too, and says what machine they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build, or end with the one line that says what is missing."""
        script = Path(self.root) / "native" / "build"
        built = subprocess.run([script], capture_output=True, text=True, check=False)
        if built.returncode:
            self.app.abort(built.stderr.strip() or f"{script} failed with {built.returncode}")
        build_data["pure_python"] = False
        build_data["tag"] = TAG.format(machine=platform.machine())
        build_data["artifacts"].append(BINARY)
