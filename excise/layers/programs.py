"""Which of the host's programs and libraries an image of the host needs: names and text in, paths out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

_WORDS = """
[ arch b2sum base32 base64 basename basenc cat chgrp chmod chown chroot cksum comm cp csplit cut date dd df dir
dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname
ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pr printenv printf ptx pwd
readlink realpath rm rmdir runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split
stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink
users vdir wc who whoami yes awk cmp diff3 egrep fgrep getent gunzip gzip hostname kill pgrep pkill ps rgrep sdiff
setsid tar which zcat
"""

ESSENTIAL = tuple(
    "bash sh cat cp diff env false find git grep head ls mkdir mv patch rm sed sleep sort tail true wc xargs".split()  # noqa: SIM905  # a word list
)
"""Without these the workloads cannot run; a host that lacks one is told so."""

USUAL = tuple(_WORDS.split())
"""Taken where the host has them."""

UNUSED_LIBRARY_PARTS = frozenset(
    "test tests idlelib tkinter turtledemo site-packages dist-packages".split()  # noqa: SIM905  # a word list
)
"""Parts of a Python standard library that no sandbox needs; site-packages belong to the host's user."""

_RESOLVED = re.compile(r"^\s+(?:\S+ => )?(/\S.*?) \(0x[0-9a-f]+\)$")


def libraries_in(ldd_output: str) -> frozenset[str]:
    """The shared libraries and loaders that `ldd` found; what it did not find is not asked for here."""
    found = (_RESOLVED.match(line) for line in ldd_output.splitlines())
    return frozenset(match[1] for match in found if match)


def settings_in(pyvenv_cfg: str) -> Mapping[str, str]:
    """The `key = value` lines of a virtual environment's `pyvenv.cfg`."""
    pairs = (line.partition("=") for line in pyvenv_cfg.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def library_name_in(settings: Mapping[str, str]) -> str | None:
    """`python3.11` for an environment of any Python 3.11: the folder its standard library is in."""
    version = settings.get("version_info") or settings.get("version") or ""
    match = re.match(r"(\d+)\.(\d+)", version)
    return f"python{match[1]}.{match[2]}" if match else None


def search_path_of(libraries: Iterable[str], own: Iterable[str]) -> list[str]:
    """The folders the dynamic loader must know: those of `libraries` that are not below a folder in `own`."""
    private = tuple(own)
    folders = {str(PurePosixPath(library).parent) for library in libraries}
    return sorted(
        f for f in folders if not any(PurePosixPath(f).is_relative_to(p) for p in private)
    )
