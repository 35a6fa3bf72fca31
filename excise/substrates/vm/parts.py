"""What guests are made of and this package does not carry: kernels, and the programs that run and fill machines."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from excise.errors import InputError
from excise.substrates.vm.config import Options

VARIABLE = "EXCISE_VM"
"""Names a folder of parts, as `lab/vm` fills one: linux.uml, kernel, modules/."""

LAB = 'lab/up vm; eval "$(lab/env)"'
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Missing(InputError):
    """A part that is not on this host, and the command that would bring it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; try: {remedy}")
        self.reason = message
        self.remedy = remedy


def program(name: str, package: str) -> Path:
    """An installed program. Administrators' folders count: they are not on everybody's PATH."""
    found = shutil.which(name) or shutil.which(name, path=SEARCH)
    if found is None:
        raise Missing(f"{name} is not installed", f"apt-get install {package}")
    return Path(found)


def folder(options: Options) -> Path | None:
    """Where the parts are said to be."""
    said = options.parts or os.environ.get(VARIABLE)
    return None if not said else Path(said).absolute()


def uml_kernel(options: Options) -> Path:
    """The kernel that is a program."""
    place = folder(options)
    if place is not None:
        if os.access(place / "linux.uml", os.X_OK):
            return place / "linux.uml"
        raise Missing(f"there is no linux.uml in {place}", LAB)
    for name in ("linux.uml", "linux"):
        if found := shutil.which(name):
            return Path(found)
    raise Missing(f"no user-mode Linux: {VARIABLE} is not set and linux.uml not installed", LAB)
