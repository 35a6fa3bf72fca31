"""What is written down about a layer when it is made, and never changed after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from excise.errors import InputError
from excise.layers.digest import Weight
from excise.layers.key import key_of

NAME = "manifest.json"


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The recipe and what came of it.

    `boot` is the start of this machine in which it was written; `kept` layers are never evicted.
    """

    recipe: dict[str, Any]
    parents: tuple[str, ...]
    digest: str
    bytes: int
    entries: int
    build_s: float
    made_at: float
    boot: str
    kept: bool = False
    notes: dict[str, Any] = {}

    @property
    def weight(self) -> Weight:
        return Weight(self.digest, self.bytes, self.entries)

    @property
    def kind(self) -> str:
        return str(self.recipe["kind"])


def write(manifest: Manifest, folder: Path) -> None:
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / NAME).write_bytes(text)


def read(folder: Path, key: str) -> Manifest | None:
    """The manifest of the layer `key`, or None if there is none, it is damaged, or it is another's."""
    try:
        manifest = msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
        mine = key_of(manifest.recipe, manifest.parents) == key
    except (OSError, msgspec.MsgspecError, InputError):
        return None
    return manifest if mine else None
