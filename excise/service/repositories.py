"""Folders of this host that an operator offers by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from excise.errors import InputError


def repositories_of(pairs: Iterable[str]) -> dict[str, str]:
    """From NAME=FOLDER, as a command line has them."""
    found = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not equals or not name or not Path(folder).is_dir():
            raise InputError(
                f"--repository takes NAME=FOLDER of a folder that is there, not {pair!r}"
            )
        found[name] = str(Path(folder).resolve())
    return found
