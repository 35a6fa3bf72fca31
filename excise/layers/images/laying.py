"""From packed layers to layers of the store: each verified as it streams by, and on top of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from excise.errors import ImageError
from excise.layers.images.below import Below
from excise.layers.images.files import Blob
from excise.layers.images.folder import entries_of, fingerprint
from excise.layers.images.found import Found
from excise.layers.images.streams import Metered, unpacked
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack
from excise.layers.key import key_of
from excise.layers.store import Layer, Pin, Store

MOST_BYTES = 64 * 1024**3
"""What one image's layers may unpack to: a few kilobytes can say that they are a petabyte."""


@dataclass(slots=True)
class _Budget:
    left: int


def lay(store: Store, found: Found, most_bytes: int = MOST_BYTES) -> Pin:
    """The image's layers in the store, those that are there already left as they are; a hold on the top one."""
    budget = _Budget(most_bytes)
    pin: Pin | None = None
    try:
        for blob, diff_id in zip(found.layers, found.config.diff_ids, strict=True):
            below = pin.layers[0] if pin is not None else None
            above = store.lease(partial(_layer, store, blob, diff_id, below, budget))
            if pin is not None:
                pin.close()
            pin = above
    except BaseException:
        if pin is not None:
            pin.close()
        raise
    if pin is None:
        raise ImageError(f"{found.digest} has no layers: there is nothing to run in it")
    return pin


def here(store: Store, diff_ids: Sequence[str]) -> tuple[Layer, ...]:
    """The image's layers that are in the store, from the lowest up to the first that is not."""
    found: list[Layer] = []
    for diff_id in diff_ids:
        layer = store.get(key_of(_recipe(diff_id), [below.id for below in found[-1:]]))
        if layer is None:
            break
        found.append(layer)
    return tuple(found)


def lay_folder(store: Store, folder: Path) -> Pin:
    """A copy of the folder as it is now, or the one that was made when it was last like this."""
    known = fingerprint(folder)

    def make(tree: Path) -> dict[str, object]:
        facts = unpack_folder(folder, tree)
        if fingerprint(folder) != known:
            raise ImageError(f"{folder} was changed while it was copied: try again once it is not")
        return facts

    recipe = {"kind": "image-folder", "fingerprint": known}
    return store.lease(lambda: store.build(key_of(recipe), recipe, make))


def unpack_folder(folder: Path, tree: Path) -> dict[str, object]:
    """Copy a folder's entries; names that mean something in a tar archive mean nothing here."""
    return unpack(entries_of(folder), tree, Below(()), literal=True)


def _recipe(diff_id: str) -> dict[str, object]:
    return {"kind": "image-layer", "diff_id": diff_id}


def _layer(store: Store, blob: Blob, diff_id: str, below: Layer | None, budget: _Budget) -> Layer:
    recipe = _recipe(diff_id)
    parents = [below] if below is not None else []
    trees = store.chain(below) if below is not None else ()

    def make(tree: Path) -> dict[str, object]:
        with ExitStack() as stack:
            packed = blob.metered(stack.enter_context(blob.files.open(blob.name)))
            source = stack.enter_context(unpacked(packed))
            too_long = f"{blob.files.what} unpacks to more than is allowed: {budget.left} bytes"
            plain = Metered(source, budget.left, too_long)
            facts = unpack(read_entries(plain), tree, Below(trees))
            plain.drain()
            packed.drain()
            blob.check(packed)
            if plain.digest != diff_id:
                raise ImageError(
                    f"{blob.name} in {blob.files.what} is damaged: it unpacks to {plain.digest}"
                )
            budget.left -= plain.passed
            return facts | {"packed_bytes": packed.passed, "unpacked_bytes": plain.passed}

    key = key_of(recipe, [parent.id for parent in parents])
    return store.build(key, recipe, make, parents)
