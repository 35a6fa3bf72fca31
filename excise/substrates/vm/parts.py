"""What guests are made of and this package does not carry: kernels, and the programs that run and fill machines."""

from __future__ import annotations

import lzma
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError
from excise.substrates.vm.config import Options

VARIABLE = "EXCISE_VM"
"""Names a folder of parts, as `lab/vm` fills one: linux.uml, kernel, modules/."""

LAB = Path(__file__).resolve().parents[3] / "lab" / "vm"
"""In a checkout: fetches all of it on a bare Debian machine."""

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Missing(InputError):
    """A part that is not on this host, and the command that would bring it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; try: {remedy}")
        self.reason = message
        self.remedy = remedy


def remedy(lab: Path = LAB) -> str:
    """What to type so that the parts are there."""
    if not lab.is_file():
        return f"export {VARIABLE}=FOLDER, with linux.uml, or a kernel and its modules/, in it"
    name = shlex.quote(str(lab))
    return f'{name} up && eval "$({name} env)"'


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


@dataclass(frozen=True, slots=True)
class QemuParts:
    """The program, and a kernel with a folder of modules."""

    program: Path
    kernel: Path
    modules: Path


def qemu_parts(options: Options) -> QemuParts:
    """Raise Missing for the first that is not there."""
    qemu = program("qemu-system-x86_64", "qemu-system-x86")
    program("qemu-img", "qemu-utils")
    place = folder(options)
    if place is None:
        raise Missing(f"no kernel for guests: {VARIABLE} names no folder with one", remedy())
    for name in ("kernel", "modules"):
        if not (place / name).exists():
            raise Missing(f"there is no {name} in {place}", remedy())
    return QemuParts(qemu, place / "kernel", place / "modules")


def modules_in(folder: Path, wanted: Sequence[str]) -> list[tuple[str, bytes]]:
    """Those that are there, in the order in which they are wanted; a kernel may have any of them built in."""
    found = {path.name.partition(".")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    return [(f"{name}.ko", _plain(found[name])) for name in wanted if name in found]


def uml_kernel(options: Options) -> Path:
    """The kernel that is a program."""
    place = folder(options)
    if place is not None:
        if os.access(place / "linux.uml", os.X_OK):
            return place / "linux.uml"
        raise Missing(f"there is no linux.uml in {place}", remedy())
    for name in ("linux.uml", "linux"):
        if found := shutil.which(name):
            return Path(found)
    raise Missing(
        f"no user-mode Linux: {VARIABLE} is not set and linux.uml not installed", remedy()
    )


def _plain(module: Path) -> bytes:
    data = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(data)
    if module.suffix == ".ko":
        return data
    raise InputError(f"{module} is compressed in a way that is not known here: unpack it")
